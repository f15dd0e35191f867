"""How networks do on the stays held out from them, and which of their states is the best so far."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from etips.learn.training.objectives import Objective, Weighted, combine, part_of, pool_of
from etips.learn.training.state import State
from etips.learn.training.teams import Team, teams_of, units_of
from etips.models.answers import batch_size_on, forward
from etips.models.batches import StepTensors
from etips.models.network import Network


@dataclass(frozen=True, eq=False)
class Risks:
    """What networks are worth on their held-out stays, each of shape (J,); 0 if they have none.

    Args:
        risk: Mean of the objective, or what it makes of the means of its terms.
        factor: Mean weight; 0 where nobody asked, or where the objective has no weights.
    """

    risk: Tensor
    factor: Tensor


@dataclass(frozen=True, eq=False)
class Validation:
    """The held-out stays of every network, and how it is measured on them.

    Args:
        network: Shape of the networks.
        steps: The stays.
        objective: What they minimise.
        held_out: How much each stay counts for each network, shape (J, n_stays).
        weigh: Also find the mean weight, where the objective has weights.
        by_others: Choose each network's epoch by the mean held-out risk of all others, so that it
            has taken nothing from its own held-out stays; its own risk counts where it is alone.
    """

    network: Network
    steps: StepTensors
    objective: Objective
    held_out: Tensor
    weigh: bool = False
    by_others: bool = False
    teams: list[Team] = field(init=False)

    def __post_init__(self) -> None:
        width = self.network.encoder.size(self.network.n_features)
        size = min(batch_size_on(self.steps.device), self.steps.n_stays)
        teams = teams_of(self.held_out, size=size, width=width)
        if self.steps.device.type == "cpu":
            teams = [part for team in teams for part in units_of(team, size=size, width=width)]
        object.__setattr__(self, "teams", teams)
        object.__setattr__(self, "weigh", self.weigh and isinstance(self.objective, Weighted))

    def risks(
        self, parameters: Mapping[str, Tensor], each: Sequence[Tensor] | None = None
    ) -> Risks:
        """Means over each network's held-out stays.

        Args:
            parameters: Of the networks.
            each: What `totals_of` says of every team, where somebody has asked it already.
        """
        like = parameters["head.bias"]
        if each is None:
            each = [self.totals_of(number, parameters) for number in range(len(self.teams))]
        totals = self._totals(like)
        for team, own in zip(self.teams, each, strict=True):
            totals[:, team.these] = own
        means = totals / totals[-1].clamp_min(1e-12)
        pooled = pool_of(self.objective) is not None
        risk = combine(self.objective, means[:-2] if pooled else means[0])
        validated = means[-1] > 0
        n_others = validated.sum() - 1
        if self.by_others and n_others > 0:
            risk = (risk[validated].sum() - risk) / n_others
        return Risks(torch.where(validated, risk, 0), means[-2])

    def totals_of(self, number: int, parameters: Mapping[str, Tensor]) -> Tensor:
        """Terms of risks, weights and counts of a team, added up, shape (2 + terms, members).

        Args:
            number: Of the team.
            parameters: Of all networks.
        """
        team = self.teams[number]
        own = {name: value[team.these] for name, value in parameters.items()}
        totals = self._totals(own["head.bias"])
        with torch.no_grad():
            self._add_up(totals, team, own)
        return totals

    def _totals(self, like: Tensor) -> Tensor:
        """Zeros, a column a network."""
        pool = pool_of(self.objective)
        shape = (2 + (1 if pool is None else pool.n_terms), len(like))
        return torch.zeros(shape, dtype=torch.float64, device=like.device)

    def _add_up(self, totals: Tensor, team: Team, parameters: Mapping[str, Tensor]) -> None:
        """Add a team's terms, weights and counts to its `totals`."""
        steps, objective = self.steps, part_of(self.objective, team.these)
        counts = self.held_out[team.these]
        for batch in steps.batches(np.flatnonzero(team.counts), batch_size_on(steps.device)):
            outputs = forward(self.network, parameters, batch, steps)
            shares = counts[:, batch.owner].double()
            totals[:-2] += (objective(outputs, batch.seen).double() * shares).sum(-1)
            if self.weigh:
                assert isinstance(objective, Weighted)
                totals[-2] += (objective.weigh(outputs, batch.seen).double() * shares).sum(1)
            totals[-1] += shares.sum(1)


def keep_best(
    state: State, validation: Validation, patience: int, each: Sequence[Tensor] | None = None
) -> float | None:
    """Validate every network and keep it if it is its best so far.

    Returns the mean matching factor of the networks there, if anybody asks and there is one.

    Args:
        state: Where training stands.
        validation: How networks are measured.
        patience: Epochs without a better risk after which a network stops.
        each: As in `Validation.risks`.
    """
    risks = validation.risks(state.parameters, each)
    validated = (validation.held_out > 0).any(1)
    running = state.running(patience)
    better = ((risks.risk < state.best_risk) | ~validated) & running
    state.epochs += running
    state.best_risk = torch.where(better, risks.risk, state.best_risk)
    state.waited = torch.where(better, torch.zeros_like(state.waited), state.waited + 1)
    for name, value in state.parameters.items():
        chosen = better.view(-1, *[1] * (value.dim() - 1))
        state.best[name] = torch.where(chosen, value, state.best[name])
    if not (validation.weigh and validated.any()):
        return None
    return float(risks.factor[validated].mean())
