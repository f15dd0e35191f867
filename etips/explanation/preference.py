"""How much a policy prefers one action to another, as a function that can be attributed."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Floats, Ints
from etips.data.history_rows import last_step
from etips.data.history_summary import summarise_history
from etips.data.scale import LOG_SHIFT, Scaler
from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.models.batches import step_tensors
from etips.models.bundle import Bundle
from etips.models.forest import Forest
from etips.models.row_model import RowModel
from etips.policies.asking import Member
from etips.policies.policy import Answer, FittedPolicy

LOG_ODDS, LOSS = "log-odds", "predicted loss"
"""What a preference is measured in."""


@dataclass(frozen=True, eq=False)
class Histories:
    """What the networks read of some decisions, scaled, in float64.

    Args:
        steps: Padded at the end, shape (n, longest, n_features).
        static: Shape (n, n_static).
        last: Number of the last step that each may see, shape (n,).
        rows: What trees read, in the units of the table, shape (n, d + s).
        summary: What models of summaries read; None where the policy has none.
    """

    steps: Tensor
    static: Tensor
    last: Tensor
    rows: Floats
    summary: Floats | None = None

    def table(self, member: Forest | RowModel) -> Floats:
        """The rows that trees or a model of rows read."""
        if isinstance(member, Forest) or member.reads == "last":
            return self.rows
        assert self.summary is not None
        return self.summary

    def take(self, chosen: Ints) -> "Histories":
        """Some of them."""
        index = torch.from_numpy(np.asarray(chosen))
        last = self.last[index]
        longest = int(last.max()) + 1
        return Histories(
            self.steps[index, :longest],
            self.static[index],
            last,
            self.rows[np.asarray(chosen)],
            None if self.summary is None else self.summary[np.asarray(chosen)],
        )


@dataclass(frozen=True, eq=False)
class Preference:
    """A policy before its floor on support: what it makes of an action against another.

    It is the mean over its networks or trees of the difference between the scores of two actions:
    log-odds of a softmax, predicted losses otherwise (the other action's minus the first's).

    Args:
        policy: Fitted.
    """

    policy: FittedPolicy

    def __post_init__(self) -> None:
        own = self.policy
        if own.kind == "tree":
            raise SettingError("policy", "is rules, which explain themselves")
        if own.propensity is None or own.scaler is None or own.kind in ("constant", "uniform"):
            rule = "reads no feature, so there is nothing to attribute"
            raise SettingError("policy", rule, fix="It gives everybody the same answer.")

    @property
    def unit(self) -> str:
        """What it is measured in."""
        return LOSS if self.policy.kind in ("least loss", "least amount") else LOG_ODDS

    @cached_property
    def networks(self) -> Bundle | None:
        """Those that speak, on the CPU in float64; cuDNN cannot go back outside of training."""
        own = self.policy
        member = own.propensity if own.kind == "imitation" else own.networks
        return member.to("cpu", torch.float64) if isinstance(member, Bundle) else None

    @cached_property
    def trees(self) -> tuple[Forest, float] | None:
        """Those that speak, and how much each of their outputs counts."""
        own = self.policy
        if isinstance(own.networks, Forest):
            return own.networks, -1.0
        starts = own.kind in ("imitation", "softmax")
        if starts and isinstance(own.propensity, Forest):
            return own.propensity, 1 / own.temperature
        return None

    @cached_property
    def row_model(self) -> tuple[RowModel, float] | None:
        """The model of rows that speaks, and how much each of its outputs counts."""
        own = self.policy
        member = own.propensity if own.kind == "imitation" else own.networks
        if not isinstance(member, RowModel):
            return None
        if own.kind == "imitation":
            return member, 1 / own.temperature
        return member, 1.0 if own.kind == "softmax" else -1.0

    @property
    def _summarises(self) -> bool:
        members = (self.policy.propensity, self.policy.networks)
        return any(isinstance(own, RowModel) and own.reads == "summary" for own in members)

    def read(self, data: Trajectories) -> Histories:
        """What the policy reads of every decision of some stays."""
        own = self.policy
        assert own.scaler is not None
        data = own.as_fitted_on(data)
        steps = step_tensors(own.scaler.transform(data), earlier_actions=own.earlier_actions)
        last = data.seen_rows - data.offsets[data.decisions().stay]
        window = np.minimum(np.arange(int(last.max(initial=0)) + 1), last[:, None])
        rows = torch.from_numpy(data.offsets[data.decisions().stay][:, None] + window)
        static = steps.static[torch.from_numpy(data.decisions().stay.copy())]
        raw = last_step(data).astype(np.float64)
        told = summarise_history(data, own.schema).astype(np.float64) if self._summarises else None
        ended = torch.from_numpy(last)
        return Histories(steps.gather(rows).double(), static.double(), ended, raw, told)

    def reference(self) -> tuple[Tensor, Tensor]:
        """The average patient as networks read them: a step, and static features."""
        own = self.policy
        assert own.scaler is not None
        step, static = (
            torch.tensor([_scaled_mean(own.scaler, name) for name in names], dtype=torch.float64)
            for names in (own.schema.sequence, own.schema.static)
        )
        none = torch.zeros(own.schema.n_actions if own.earlier_actions else 0, dtype=torch.float64)
        return torch.cat([step, none]), static

    def reference_row(self) -> Floats:
        """The average patient as trees read them, shape (d + s,)."""
        own = self.policy
        assert own.scaler is not None
        names = (*own.schema.sequence, *own.schema.static)
        return np.array([_plain_mean(own.scaler, name) for name in names])

    def by_networks(
        self, steps: Tensor, static: Tensor, last: Tensor, action: Tensor, against: Tensor
    ) -> Tensor:
        """The part of the networks, mean over them, shape (n,)."""
        scores = self.network_scores(steps, static, last).mean(0)
        return (scores.gather(1, action[:, None]) - scores.gather(1, against[:, None])).squeeze(1)

    def network_scores(self, steps: Tensor, static: Tensor, last: Tensor) -> Tensor:
        """Scores of all actions by each network, higher is better, shape (J, n, K)."""
        bundle, own = self.networks, self.policy
        assert bundle is not None
        n = len(last)
        slots = last * n + torch.arange(n)
        outputs = bundle.network.outputs(
            bundle.parameters, steps.transpose(0, 1).contiguous(), static, slots=slots
        )
        if own.kind == "least loss":
            return -outputs.sigmoid()
        if own.kind == "least amount":
            return -outputs
        return outputs / own.temperature if own.kind == "imitation" else outputs

    def answer(self, histories: Histories) -> Answer:
        """What the policy says of some histories, floor on support and all, in float32."""
        own = self.policy
        steps = histories.steps.transpose(0, 1).float().contiguous()
        slots = histories.last * len(histories.last) + torch.arange(len(histories.last))

        def ask(member: Member) -> Tensor:
            if not isinstance(member, Bundle):
                return torch.from_numpy(member.outputs(histories.table(member)))
            bundle = member.to("cpu")
            static = histories.static.float()
            return bundle.network.outputs(bundle.parameters, steps, static, slots=slots)

        assert own.propensity is not None
        with torch.no_grad():
            logits = ask(own.propensity) / own.temperature
            outputs = None if own.networks is None else ask(own.networks)
            if outputs is not None and own.kind == "softmax" and isinstance(own.propensity, Forest):
                outputs = outputs + logits.log_softmax(-1)
            said = own.decide(logits.double().softmax(-1).mean(0), outputs)
        return Answer(said[0].numpy(), said[1].numpy())


def _scaled_mean(scaler: Scaler, name: str) -> float:
    """The training mean as networks read it: 0, but for columns that are left as they are."""
    return scaler.mean_[name] if name in scaler.left_ else 0.0


def _plain_mean(scaler: Scaler, name: str) -> float:
    mean = scaler.mean_[name]
    logarithm = name in scaler.log and name not in scaler.left_
    return float(np.exp(mean) - LOG_SHIFT) if logarithm else mean
