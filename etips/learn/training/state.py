"""Where training stands."""

from dataclasses import dataclass

import torch
from torch import Tensor

from etips.models.bundle import Bundle, Trained
from etips.models.network import Network


@dataclass(frozen=True, eq=False)
class Moving:
    """What a learning step changes, in place: parameters, Adam's two moments, the loss so far."""

    parameters: dict[str, Tensor]
    first: dict[str, Tensor]
    second: dict[str, Tensor]
    tally: Tensor

    def of(self, these: slice) -> "Moving":
        """That of some networks, in the same memory."""
        first, second, third = (
            {name: value[these] for name, value in group.items()}
            for group in (self.parameters, self.first, self.second)
        )
        return Moving(first, second, third, self.tally[these])

    def tensors(self) -> list[Tensor]:
        """All of them."""
        groups = (self.parameters, self.first, self.second)
        return [*(value for group in groups for value in group.values()), self.tally]


@dataclass(eq=False)
class State:
    """Everything a run needs to go on: with it, and the settings, the future is determined.

    Args:
        parameters: By name, shape (J, ...).
        first: Adam's running mean, alike.
        second: Adam's running square, alike.
        best: Parameters at their held-out best, shape (J, ...).
        best_risk: Held-out risk there, shape (J,).
        waited: Epochs since, shape (J,).
        tally: Training loss over the batches of the epoch, shape (J,).
        epochs: How many each has learned for, shape (J,).
        epoch: How many are done.
        batch: Batches of this epoch that are done.
        step: Batches of all epochs that are done.
    """

    parameters: dict[str, Tensor]
    first: dict[str, Tensor]
    second: dict[str, Tensor]
    best: dict[str, Tensor]
    best_risk: Tensor
    waited: Tensor
    tally: Tensor
    epochs: Tensor
    epoch: int = 0
    batch: int = 0
    step: int = 0

    @classmethod
    def start(cls, bundle: Bundle) -> "State":
        """The state before the first step."""
        own = {name: value.detach().clone() for name, value in bundle.parameters.items()}
        n_members, device = bundle.n_members, bundle.device
        return cls(
            parameters=own,
            first={name: torch.zeros_like(value) for name, value in own.items()},
            second={name: torch.zeros_like(value) for name, value in own.items()},
            best={name: value.clone() for name, value in own.items()},
            best_risk=torch.full((n_members,), torch.inf, dtype=torch.float64, device=device),
            waited=torch.zeros(n_members, dtype=torch.long, device=device),
            tally=torch.zeros(n_members, dtype=torch.float64, device=device),
            epochs=torch.zeros(n_members, dtype=torch.long, device=device),
        )

    @property
    def moving(self) -> Moving:
        """What a learning step changes."""
        return Moving(self.parameters, self.first, self.second, self.tally)

    def running(self, patience: int) -> Tensor:
        """Whether each network still learns, shape (J,)."""
        return self.waited < patience

    def trained(self, network: Network) -> Bundle:
        """All networks at their best."""
        return Bundle(network, self.best, tuple(map(Trained, self.epochs.tolist())))
