"""How much a policy prefers one action to another, as a function that can be attributed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Floats, Ints
from etips.data.history_rows import last_step
from etips.data.scale import LOG_SHIFT
from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.models.batches import step_tensors
from etips.models.bundle import Bundle
from etips.models.row_model import Reads, rows_of
from etips.models.stack import Stack
from etips.policies.asking import Member, ReadsRows, read_by, singles
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
        summaries: What models of the history read, where the policy has such, shape (n, columns).
        average: The same of the average patient, over as many steps.
    """

    steps: Tensor
    static: Tensor
    last: Tensor
    rows: Floats
    summaries: Mapping[Reads, Floats] = field(default_factory=dict)
    average: Mapping[Reads, Floats] = field(default_factory=dict)

    def table(self, member: ReadsRows) -> Floats:
        """The rows that trees or a model of rows read."""
        reads = read_by(member)
        return self.rows if reads == "last" else self.summaries[reads]

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
            {reads: table[np.asarray(chosen)] for reads, table in self.summaries.items()},
            {reads: table[np.asarray(chosen)] for reads, table in self.average.items()},
        )


@dataclass(frozen=True, eq=False)
class Preference:
    """A policy before its floor on support: what it makes of an action against another.

    It is the mean over its networks or trees of the difference between the scores of two actions:
    log-odds of a softmax, predicted losses otherwise (the other action's minus the first's), and
    what the policy leans by towards what clinicians do.

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
    def is_mixed(self) -> bool:
        """Whether what speaks is attributed as a whole, by columns of the table."""
        own = self.policy
        member = own.propensity if own.kind == "imitation" else own.networks
        return own.lean > 0 or not isinstance(member, Bundle)

    @cached_property
    def networks(self) -> Bundle | None:
        """Those that speak, on the CPU in float64; cuDNN cannot go back outside of training."""
        own = self.policy
        member = own.propensity if own.kind == "imitation" else own.networks
        if not isinstance(member, Bundle) or self.is_mixed:
            return None
        return member.to("cpu", torch.float64)

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
        ended, inputs = torch.from_numpy(last), steps.gather(rows).double()
        return Histories(inputs, static.double(), ended, raw, *self._summaries(data))

    def _summaries(self, data: Trajectories) -> list[dict[Reads, Floats]]:
        """What models of the history read of stays, and of the average patient over their steps."""
        own = self.policy
        members = singles((own.propensity, own.networks))
        every = {read_by(one) for one in members if not isinstance(one, Bundle)} - {"last"}
        if not every:
            return []
        row, d = self.reference_row().astype(np.float32), data.sequence.shape[1]
        average = replace(
            data,
            sequence=np.broadcast_to(row[:d], data.sequence.shape),
            static=np.broadcast_to(row[d:], data.static.shape),
        )
        return [
            {reads: rows_of(stays, reads, own.schema).astype(np.float64) for reads in every}
            for stays in (data, average)
        ]

    def reference(self) -> tuple[Tensor, Tensor]:
        """The average patient as networks read them: a step, and static features."""
        own = self.policy
        assert own.scaler is not None
        step, static = (
            torch.tensor(
                [own.scaler.mean_[name] if name in own.scaler.left_ else 0.0 for name in names],
                dtype=torch.float64,
            )
            for names in (own.schema.sequence, own.schema.static)
        )
        none = torch.zeros(own.schema.n_actions if own.earlier_actions else 0, dtype=torch.float64)
        return torch.cat([step, none]), static

    def reference_row(self) -> Floats:
        """The average patient as trees read them, shape (d + s,)."""
        scaler, schema = self.policy.scaler, self.policy.schema
        assert scaler is not None
        names = (*schema.sequence, *schema.static)
        logs = [name in scaler.log and name not in scaler.left_ for name in names]
        mean = np.array([scaler.mean_[name] for name in names])
        return np.where(logs, np.exp(np.where(logs, mean, 0.0)) - LOG_SHIFT, mean)

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

    def scores(self, histories: Histories) -> Floats:
        """What is made of every action where the policy is mixed, more is better, shape (n, K)."""
        own = self.policy
        assert own.propensity is not None
        with torch.no_grad():
            logits = _ask(own.propensity, histories).double() / own.temperature
            if own.kind == "imitation":
                return np.asarray(logits.mean(0).numpy())
            assert own.networks is not None
            outputs = _ask(own.networks, histories).double()
            if own.kind != "softmax":
                return np.asarray(-own.costs(outputs, logits.softmax(-1).mean(0)).numpy())
            return np.asarray(outputs.mean(0).numpy())

    def answer(self, histories: Histories) -> Answer:
        """What the policy says of some histories, floor on support and all, in float32."""
        own = self.policy
        assert own.propensity is not None
        with torch.no_grad():
            logits = _ask(own.propensity, histories) / own.temperature
            outputs = None if own.networks is None else _ask(own.networks, histories)
            said = own.decide(logits.double().softmax(-1).mean(0), outputs)
        return Answer(said[0].numpy(), said[1].numpy())


def _ask(member: Member, histories: Histories) -> Tensor:
    """Outputs of a member, of networks in float32, shape (J, n, K)."""
    if isinstance(member, Stack):
        return member.mix([_ask(part.member, histories) for part in member.members])
    if not isinstance(member, Bundle):
        return torch.from_numpy(member.outputs(histories.table(member)))
    bundle, last = member.to("cpu"), histories.last
    steps = histories.steps.transpose(0, 1).float().contiguous()
    slots = last * len(last) + torch.arange(len(last))
    return bundle.network.outputs(bundle.parameters, steps, histories.static.float(), slots=slots)
