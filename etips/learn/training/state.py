"""Where training stands."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from etips.learn.training.parallel import shared
from etips.models.bundle import Bundle, Trained
from etips.models.network import Network


@dataclass(eq=False)
class State:
    """Everything a run needs to go on after an epoch: with the settings it determines the future.

    Args:
        parameters: By name, shape (J, ...).
        first: Adam's running mean, alike.
        second: Adam's running square, alike.
        best: Parameters at their held-out best, shape (J, ...).
        best_risk: Held-out risk there, shape (J,).
        waited: Epochs since, shape (J,).
        epochs: How many each has learned for, shape (J,).
        epoch: How many are done.
    """

    parameters: dict[str, Tensor]
    first: dict[str, Tensor]
    second: dict[str, Tensor]
    best: dict[str, Tensor]
    best_risk: Tensor
    waited: Tensor
    epochs: Tensor
    epoch: int = 0

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
            epochs=torch.zeros(n_members, dtype=torch.long, device=device),
        )

    def share(self) -> None:
        """Put all of it where processes share it; on a GPU it stays.

        Products are rounded by where matrices begin in memory, so that this is done whoever trains.
        """
        if self.waited.device.type != "cpu":
            return
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                setattr(self, field.name, shared(value))
            elif isinstance(value, dict):
                value.update({name: shared(own) for name, own in value.items()})

    def of(self, these: slice) -> "State":
        """That of some networks, in the same memory."""

        def some(value: object) -> object:
            if isinstance(value, dict):
                return {name: own[these] for name, own in value.items()}
            return value[these] if isinstance(value, Tensor) else value

        return State(**{own.name: some(getattr(self, own.name)) for own in fields(self)})  # type: ignore[arg-type]

    def running(self, patience: int) -> Tensor:
        """Whether each network still learns, shape (J,)."""
        return self.waited < patience

    def trained(self, network: Network) -> Bundle:
        """All networks at their best."""
        best = {name: value.clone() for name, value in self.best.items()}
        return Bundle(network, best, tuple(map(Trained, self.epochs.tolist())))
