"""How networks do on the stays held out from them, and which of their states is the best so far."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from etips.learn.training.objectives import Objective, Weighted, combine, part_of, pool_of
from etips.learn.training.state import State
from etips.models.answers import batch_size_on, forward
from etips.models.batches import StepTensors
from etips.models.network import Network


@dataclass(frozen=True, eq=False)
class Validation:
    """The held-out stays of every network, and how it is measured on them.

    Args:
        network: Shape of the networks.
        steps: The stays.
        objective: What they minimise.
        held_out: How much each stay counts for each network, shape (J, n_stays).
        weigh: Also find the mean weight, where the objective has weights.
    """

    network: Network
    steps: StepTensors
    objective: Objective
    held_out: Tensor
    weigh: bool = False

    def of(self, these: slice) -> "Validation":
        """That of some networks."""
        objective = part_of(self.objective, these)
        return Validation(self.network, self.steps, objective, self.held_out[these], self.weigh)

    def risks(self, parameters: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Risk and mean weight of each network on its held-out stays, shape (J,); 0 without any."""
        pool, steps = pool_of(self.objective), self.steps
        held_out, like = self.held_out, parameters["head.bias"]
        shape = (2 + (1 if pool is None else pool.n_terms), len(like))
        totals = torch.zeros(shape, dtype=torch.float64, device=like.device)
        counts = (held_out > 0).any(0).cpu().numpy()
        with torch.no_grad():
            for batch in steps.batches(np.flatnonzero(counts), batch_size_on(steps.device)):
                outputs = forward(self.network, parameters, batch, steps)
                shares = held_out[:, batch.owner].double()
                values = self.objective(outputs, batch.seen).double()
                totals[:-2] += (values * shares).sum(-1)
                if self.weigh and isinstance(self.objective, Weighted):
                    weights = self.objective.weigh(outputs, batch.seen).double()
                    totals[-2] += (weights * shares).sum(1)
                totals[-1] += shares.sum(1)
        means = totals / totals[-1].clamp_min(1e-12)
        risk = combine(self.objective, means[0] if pool is None else means[:-2])
        return torch.where(means[-1] > 0, risk, 0), means[-2]


def risks_of_others(risk: Tensor, validated: Tensor) -> Tensor:
    """The mean risk of all other networks, shape (J,), or a network's own where it is alone.

    What is chosen by it has taken nothing from the network's own held-out stays.

    Args:
        risk: Of each network, shape (J,).
        validated: Whether it has held-out stays, shape (J,).
    """
    n_others = int(validated.sum()) - 1
    if n_others < 1:
        return risk
    return torch.where(validated, (risk[validated].sum() - risk) / n_others, 0)


def keep_best(state: State, risk: Tensor, validated: Tensor, patience: int) -> None:
    """Keep every network that is its best so far.

    Args:
        state: Changed in place.
        risk: By which each is chosen, shape (J,).
        validated: Whether there is one, shape (J,); without it the last epoch is the best.
        patience: Epochs without a better risk after which a network stops.
    """
    running = state.running(patience)
    better = ((risk < state.best_risk) | ~validated) & running
    state.epochs.add_(running)
    state.best_risk.copy_(torch.where(better, risk, state.best_risk))
    state.waited.copy_(torch.where(better, torch.zeros_like(state.waited), state.waited + 1))
    for name, value in state.parameters.items():
        chosen = better.view(-1, *[1] * (value.dim() - 1))
        state.best[name].copy_(torch.where(chosen, value, state.best[name]))
