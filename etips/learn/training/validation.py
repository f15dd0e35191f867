"""How networks do on the stays held out from them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from etips.learn.training.objectives import Objective, Weighted, part_of
from etips.learn.training.settings import Settings
from etips.learn.training.state import State
from etips.learn.training.teams import Team, teams_of
from etips.models.answers import batch_size_on, forward
from etips.models.batches import StepTensors
from etips.models.bundle import Bundle
from etips.models.network import Network


class Judged(NamedTuple):
    """What networks are worth on their held-out stays, each of shape (J,); 0 if they have none.

    Args:
        risk: Mean of the objective.
        factor: Mean weight; 0 where nobody asked, or where the objective has no weights.
    """

    risk: Tensor
    factor: Tensor


def look(
    bundle: Bundle,
    state: State,
    steps: StepTensors,
    objective: Objective,
    held_out: Tensor,
    settings: Settings,
    *,
    teams: Sequence[Team],
    weigh: bool = False,
) -> dict[str, float]:
    """Judge every network on its held-out stays and keep it if it is its best so far.

    Returns the mean matching factor of the networks there, if anybody asks and there is one.
    """
    weigh = weigh and isinstance(objective, Weighted)
    networks = Bundle(bundle.network, state.parameters)
    risk, factor = judge(networks, steps, objective, held_out, teams=teams, weigh=weigh)
    judged = (held_out > 0).any(1)
    better = (risk < state.best_risk) | ~judged
    better &= state.waited < settings.patience
    state.best_risk = torch.where(better, risk, state.best_risk)
    state.waited = torch.where(better, torch.zeros_like(state.waited), state.waited + 1)
    for name, value in state.parameters.items():
        chosen = better.view(-1, *[1] * (value.dim() - 1))
        state.best[name] = torch.where(chosen, value, state.best[name])
    return {"matching_factor": float(factor[judged].mean())} if weigh and judged.any() else {}


def held_out_teams(network: Network, steps: StepTensors, held_out: Tensor) -> list[Team]:
    """Networks that are judged on the same stays."""
    width = network.encoder.size(network.n_features)
    return teams_of(held_out, size=min(batch_size_on(steps.device), steps.n_stays), width=width)


def judge(
    bundle: Bundle,
    steps: StepTensors,
    objective: Objective,
    held_out: Tensor,
    *,
    teams: Sequence[Team],
    weigh: bool = False,
) -> Judged:
    """Means over each network's held-out stays.

    Args:
        bundle: The networks.
        steps: The stays.
        objective: What they minimise.
        held_out: How much each stay counts for each network, shape (J, n_stays).
        teams: As `held_out_teams` finds them.
        weigh: Also find the mean weight.
    """
    totals = torch.zeros(3, bundle.n_members, dtype=torch.float64, device=bundle.device)
    with torch.no_grad():
        for team in teams:
            _add_up(totals, team, bundle, steps, objective, held_out, weigh=weigh)
    risk, factor, count = totals
    return Judged(risk / count.clamp_min(1e-12), factor / count.clamp_min(1e-12))


def _add_up(
    totals: Tensor,
    team: Team,
    bundle: Bundle,
    steps: StepTensors,
    objective: Objective,
    held_out: Tensor,
    *,
    weigh: bool,
) -> None:
    """Add a team's risks, weights and counts to the `totals`, shape (3, J)."""
    mine, own, counts = totals[:, team.these], part_of(objective, team.these), held_out[team.these]
    parameters = {name: value[team.these] for name, value in bundle.parameters.items()}
    for batch in steps.batches(np.flatnonzero(team.counts), batch_size_on(steps.device)):
        outputs = forward(bundle.network, parameters, batch, steps)
        shares = counts[:, batch.owner].double()
        mine[0] += (own(outputs, batch.seen).double() * shares).sum(1)
        if weigh:
            assert isinstance(own, Weighted)
            mine[1] += (own.weigh(outputs, batch.seen).double() * shares).sum(1)
        mine[2] += shares.sum(1)
