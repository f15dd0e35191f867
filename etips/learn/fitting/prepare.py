"""From Trajectories to what training reads: scaled tensors, folds of stays, the log by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from etips.data.decisions import Bools, Ints
from etips.data.scale import Scaler
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require
from etips.models.batches import StepTensors, as_tensor, step_tensors
from etips.models.gpu import Place

HELD_OUT_ALONE = 10
"""Without cross-fitting one stay in this many is held out for early stopping."""

INNER_PART = 8
"""Cross-fitted, one in this many of the stays a network may learn from decides when it stops."""

FEWEST_INNER, LARGEST_INNER_PART = 20, 5
"""An eighth of a small log is too few to stop by: this many are taken, if a fifth allows it."""

LARGEST_LOSS = 1e30
"""Of a logged decision: networks learn in float32, which ends at 3e38."""


@dataclass(frozen=True, eq=False)
class Folds:
    """Which stays each network of a set learns from, stops by, and is asked about.

    Cross-fitted, network k is asked about fold k, which neither trained nor stopped it: it learns
    from the other folds less a part of the next one, and stops by that part. So half of all stays
    (of five folds) have a second network that did not learn from them. In-sample there is one
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
    features: Place = "auto",
) -> Prepared:
    """Scale the stays, put them on a device and deal them into folds.

    Args:
        data: Logged stays with at least one decision.
        n_folds: Number of folds; 1 for in-sample.
        seed: Of the folds.
        device: Where to train.
        earlier_actions: Let the networks read the newest earlier action.
        features: Whether features stay in the host's memory; if they do not fit, unless told.
    """
    if data.n_decisions == 0:
        raise DataError("data", "must hold at least one decision")
    size = np.abs(data.logged_loss)
    require("loss", f"must be within +-{LARGEST_LOSS:g}", size <= LARGEST_LOSS, fix="Rescale it.")
    scaler = Scaler(log=data.schema.logarithms).fit(data)
    seen, scaled = data.seen_rows, scaler.transform(data)
    return Prepared(
        data=data,
        scaler=scaler,
        steps=step_tensors(
            scaled, earlier_actions=earlier_actions, device=device, features=features
        ),
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
    stops = _inner_parts(data.units, fold, seed)
    learns = (fold != np.arange(len(stops))[:, None]) & ~stops
    weight, held_out = (torch.from_numpy(part.astype(np.float32)) for part in (learns, stops))
    return Folds(fold, weight.to(device), held_out.to(device))


def _inner_parts(units: Ints, fold: Ints, seed: int) -> Bools:
    """Which stays of the next fold each network stops by, shape (n_folds, n_stays).

    None where that would leave nothing to learn from; such a network trains to the end.
    """
    fold_of_unit = np.empty(units.max() + 1, np.int64)
    fold_of_unit[units] = fold
    order = np.random.default_rng([seed, INNER_PART]).permutation(len(fold_of_unit))
    n_folds = int(fold.max()) + 1
    stops = np.zeros((n_folds, len(fold_of_unit)), bool)
    for network in range(n_folds):
        n_others = int((fold_of_unit != network).sum())
        least = min(FEWEST_INNER, n_others // LARGEST_INNER_PART)
        size = min(max(n_others // INNER_PART, least, 1), n_others - 1)
        following = order[fold_of_unit[order] == (network + 1) % n_folds]
        stops[network, following[:size]] = True
    return stops[:, units]


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
