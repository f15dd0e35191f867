"""From Trajectories to what training reads: scaled tensors, folds of stays, the log by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from etips.data.decisions import Ints
from etips.data.scale import Scaler
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require
from etips.models.batches import StepTensors, as_tensor, step_tensors

HELD_OUT_ALONE = 10
"""Without cross-fitting one stay in this many is held out for early stopping."""

LARGEST_LOSS = 1e30
"""Of a logged decision: networks learn in float32, which ends at 3e38."""


@dataclass(frozen=True, eq=False)
class Folds:
    """Which stays each network of a set learns from, stops by, and is asked about.

    Cross-fitted, network k learns from the other folds, stops by fold k and is asked about fold k,
    so that nobody's answer comes from a network that learned from them. In-sample there is one
    network, asked about everybody.

    Args:
        fold: Network that answers for each stay, shape (n_stays,).
        weight: Whether a stay is learned from, shape (n_networks, n_stays).
        held_out: Whether it decides when to stop, shape (n_networks, n_stays).
    """

    fold: Ints
    weight: Tensor
    held_out: Tensor

    @property
    def n_networks(self) -> int:
        """Networks in a set."""
        return len(self.weight)

    def tile(self, times: int) -> tuple[Tensor, Tensor]:
        """Weights for `times` sets side by side: set 0's networks first."""
        return self.weight.repeat(times, 1), self.held_out.repeat(times, 1)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Logged stays, ready to train on.

    Args:
        data: The stays as they came.
        scaler: Fitted on them.
        steps: Their scaled features as tensors.
        folds: How the networks share them.
        seen: Row of the last step each decision may see, shape (n_decisions,).
        action: Logged action by row, shape (n_steps,); 0 at rows that answer no decision.
        loss: Its loss by row.
    """

    data: Trajectories
    scaler: Scaler
    steps: StepTensors
    folds: Folds
    seen: Ints
    action: Tensor
    loss: Tensor

    def by_row(self, values: NDArray[Any]) -> Tensor:
        """Values of the decisions, shape (n_decisions, ...), at the rows that answer them."""
        return _by_row(values, self.seen, self.data.n_steps, self.steps.device)


def prepare(
    data: Trajectories,
    *,
    n_folds: int,
    seed: int,
    device: torch.device,
    earlier_actions: bool = False,
) -> Prepared:
    """Scale the stays, put them on a device and deal them into folds.

    Args:
        data: Logged stays with at least one decision.
        n_folds: Number of folds; 1 for in-sample.
        seed: Of the folds.
        device: Where to train.
        earlier_actions: Let the networks read the newest earlier action.
    """
    if data.n_decisions == 0:
        raise DataError("data", "must hold at least one decision")
    size = np.abs(data.logged_loss)
    require("loss", f"must be within +-{LARGEST_LOSS:g}", size <= LARGEST_LOSS, fix="Rescale it.")
    scaler = Scaler(log=data.schema.logarithms).fit(data)
    seen = data.seen_rows
    return Prepared(
        data=data,
        scaler=scaler,
        steps=step_tensors(scaler.transform(data), earlier_actions=earlier_actions, device=device),
        folds=_deal(data, n_folds, seed, device),
        seen=seen,
        action=_by_row(data.logged_action, seen, data.n_steps, device),
        loss=_by_row(data.logged_loss.astype(np.float32), seen, data.n_steps, device),
    )


def _deal(data: Trajectories, n_folds: int, seed: int, device: torch.device) -> Folds:
    if n_folds == 1:
        part = assign_folds(data, n_folds=min(HELD_OUT_ALONE, _units(data)), seed=seed)
        out = torch.from_numpy((part == 0).astype(np.float32))[None]
        return Folds(np.zeros(data.n_stays, np.int64), (1 - out).to(device), out.to(device))
    fold = assign_folds(data, n_folds=min(n_folds, _units(data)), seed=seed)
    out = torch.from_numpy((fold == np.arange(fold.max() + 1)[:, None]).astype(np.float32))
    return Folds(fold, (1 - out).to(device), out.to(device))


def _units(data: Trajectories) -> int:
    """How many stays or patients there are to deal; two at least, or the dealing refuses."""
    return max(int(data.units.max()) + 1, 2)


def _by_row(values: NDArray[Any], seen: Ints, n_steps: int, device: torch.device) -> Tensor:
    spread = np.zeros((n_steps, *values.shape[1:]), values.dtype)
    spread[seen] = values
    return as_tensor(spread, device)


def choose_device(name: str) -> torch.device:
    """The device called `name`; "auto" is the GPU where there is one."""
    if not isinstance(name, str):
        raise SettingError("device", "must be auto, cpu or cuda")
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise SettingError("device", "cuda was asked for, but torch finds no GPU")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise SettingError("device", "must be auto, cpu or cuda") from error
    if device.type not in ("cpu", "cuda"):
        raise SettingError("device", "must be auto, cpu or cuda")
    return device


def seeds_from(seed: int, purpose: int, count: int) -> Sequence[int]:
    """Seeds of networks: no two purposes of one run share any."""
    words = np.random.SeedSequence([seed, purpose]).generate_state(count)
    return [int(word) for word in words]
