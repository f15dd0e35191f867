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
from etips.policies.asking import Member, read_by, singles
from etips.policies.policy import Answer, FittedPolicy

LOG_ODDS, LOSS = "log-odds", "predicted loss"
"""What a preference is measured in."""


@dataclass(frozen=True, eq=False)
class Histories:
    """What a policy reads of some decisions.

    Args:
        steps: Scaled, padded at the end, in float64, shape (n, longest, n_features).
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

    def take(self, chosen: Ints) -> "Histories":
        """Some of them."""
        index = torch.from_numpy(np.asarray(chosen))
        last = self.last[index]
        return Histories(
            self.steps[index, : int(last.max()) + 1],
            self.static[index],
            last,
            self.rows[chosen],
            {reads: table[chosen] for reads, table in self.summaries.items()},
            {reads: table[chosen] for reads, table in self.average.items()},
        )


@dataclass(frozen=True, eq=False)
class Preference:
    """A policy before its floor on support: what it makes of an action against another.

    It is the mean over its networks or trees of the difference between the scores of two actions:
    log-odds of a softmax, predicted losses otherwise (the other action's minus the first's), and
    what the policy leans by towards what clinicians do.
    """

    policy: FittedPolicy

    def __post_init__(self) -> None:
        if self.policy.kind == "tree":
            raise SettingError("policy", "is rules, which explain themselves")
        if not reads_features(self.policy) or self.policy.scaler is None:
            rule = "reads no feature, so there is nothing to attribute"
            raise SettingError("policy", rule, fix="It gives everybody the same answer.")

    @property
    def unit(self) -> str:
        """What it is measured in."""
        return LOSS if self.policy.kind in ("least loss", "least amount") else LOG_ODDS

    @property
    def scoring(self) -> Member:
        """What gives actions their scores."""
        own = self.policy
        member = own.propensity if own.kind == "imitation" else own.networks
        assert member is not None
        return member

    @property
    def is_mixed(self) -> bool:
        """Whether what speaks is attributed as a whole, by columns of the table."""
        return self.policy.lean > 0 or not isinstance(self.scoring, Bundle)

    def described(self) -> str:
        """What is attributed and how, in words."""
        own = self.policy
        if not self.is_mixed:
            return f"integrated gradients of the mean of {self.scoring.n_members} networks"
        parts = singles((own.networks, own.propensity if own.lean or not own.networks else None))
        models = "one model" if len(parts) == 1 else f"{len(parts)} models as one"
        return f"Shapley values, by sampled orders, of {models}"

    def read(self, data: Trajectories) -> Histories:
        """What the policy reads of every decision of some stays."""
        own = self.policy
        assert own.scaler is not None
        data = own.as_fitted_on(data)
        steps = step_tensors(own.scaler.transform(data), earlier_actions=own.earlier_actions)
        stay = data.decisions().stay
        last = data.seen_rows - data.offsets[stay]
        window = np.minimum(np.arange(int(last.max(initial=0)) + 1), last[:, None])
        rows = torch.from_numpy(data.offsets[stay][:, None] + window)
        members = singles((own.propensity, own.networks))
        kinds = {read_by(one) for one in members if not isinstance(one, Bundle)} - {"last"}
        average, d = self.reference_row().astype(np.float32), data.sequence.shape[1]
        still = replace(
            data,
            sequence=np.broadcast_to(average[:d], data.sequence.shape),
            static=np.broadcast_to(average[d:], data.static.shape),
        )
        summaries, of_average = (
            {reads: rows_of(stays, reads, own.schema).astype(np.float64) for reads in kinds}
            for stays in (data, still)
        )
        return Histories(
            steps.gather(rows).double(),
            steps.static[torch.from_numpy(stay.copy())].double(),
            torch.from_numpy(last),
            last_step(data).astype(np.float64),
            summaries,
            of_average,
        )

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

    @cached_property
    def _exact(self) -> tuple[Member | None, Member | None]:
        """Propensities and networks in float64 on the CPU; cuDNN has no way back from an answer."""
        own = self.policy
        propensity, networks = (
            None if member is None else _moved(member, torch.float64)
            for member in (own.propensity, own.networks)
        )
        return propensity, networks

    def scores(self, histories: Histories) -> Tensor:
        """What is made of every action, more is better, shape (n, K); has a gradient by steps."""
        own, (propensity, networks) = self.policy, self._exact
        assert propensity is not None
        if own.kind == "imitation":
            return (_ask(propensity, histories) / own.temperature).mean(0)
        assert networks is not None
        outputs = _ask(networks, histories).double()
        if own.kind == "softmax":
            return outputs.mean(0)
        clinicians = outputs[0]
        if own.lean:
            logits = _ask(propensity, histories).double() / own.temperature
            clinicians = logits.softmax(-1).mean(0)
        return -own.costs(outputs, clinicians)

    def between(self, histories: Histories, action: Tensor, against: Tensor) -> Tensor:
        """How much it prefers one action to another, shape (n,)."""
        scores = self.scores(histories)
        return (scores.gather(1, action[:, None]) - scores.gather(1, against[:, None])).squeeze(1)

    def answer(self, histories: Histories) -> Answer:
        """What the policy answers to some histories, floor on support and all, in float32."""
        own = self.policy
        assert own.propensity is not None
        with torch.no_grad():
            logits = _ask(_moved(own.propensity), histories) / own.temperature
            outputs = None if own.networks is None else _ask(_moved(own.networks), histories)
            probabilities, silent = own.decide(logits.double().softmax(-1).mean(0), outputs)
        return Answer(probabilities.numpy(), silent.numpy())

    def two_likeliest(self, histories: Histories) -> tuple[Ints, Ints]:
        """The likeliest action of each decision, and the next."""
        order = np.argsort(-self.answer(histories).probabilities, axis=1, kind="stable")
        return order[:, 0], order[:, 1]


def reads_features(policy: FittedPolicy) -> bool:
    """Whether networks or trees of a policy can be asked why."""
    return policy.propensity is not None and policy.kind not in ("constant", "uniform", "tree")


def _moved(member: Member, dtype: torch.dtype | None = None) -> Member:
    """A member with its networks on the CPU, in another precision if asked for."""
    if isinstance(member, Stack):
        parts = (
            replace(own, member=own.member.to("cpu", dtype))
            if isinstance(own.member, Bundle)
            else own
            for own in member.members
        )
        return replace(member, members=tuple(parts))
    return member.to("cpu", dtype) if isinstance(member, Bundle) else member


def _ask(member: Member, histories: Histories) -> Tensor:
    """Outputs of a member, of networks in their own precision, shape (J, n, K)."""
    if isinstance(member, Stack):
        return member.mix([_ask(part.member, histories) for part in member.members])
    if not isinstance(member, Bundle):
        reads = read_by(member)
        rows = histories.rows if reads == "last" else histories.summaries[reads]
        return torch.from_numpy(member.outputs(rows))
    kind, last = member.parameters["head.bias"].dtype, histories.last
    steps = histories.steps.transpose(0, 1).to(kind).contiguous()
    slots = last * len(last) + torch.arange(len(last))
    return member.network.outputs(member.parameters, steps, histories.static.to(kind), slots=slots)
