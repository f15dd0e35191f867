"""Downhill with the whole batch: L-BFGS of torch, which draws nothing by chance."""

from collections.abc import Callable

import torch
from torch import Tensor

STEPS = 100
"""Iterations at most."""


def descend(value: Callable[[Tensor], Tensor], start: Tensor, *, steps: int = STEPS) -> Tensor:
    """Where a smooth function is least, as far as `steps` iterations lead from `start`.

    Args:
        value: Of a tensor like `start`; a scalar.
        start: Left as it is.
        steps: Iterations at most; it ends sooner where the function gets no better.
    """
    place = start.detach().clone().requires_grad_(True)
    optimiser = torch.optim.LBFGS(
        [place],
        max_iter=steps,
        history_size=10,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        line_search_fn="strong_wolfe",
    )

    def ask() -> Tensor:
        optimiser.zero_grad()
        found = value(place)
        found.backward()  # type: ignore[no-untyped-call]
        return found

    with torch.enable_grad():
        optimiser.step(ask)  # type: ignore[no-untyped-call]
    return place.detach()
