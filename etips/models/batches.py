"""Stays as tensors: every step once, batches of stays of like length, padded at the end."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from etips.data.coded import Coded, Features
from etips.data.decisions import NO_ACTION, Ints
from etips.data.trajectories import Trajectories
from etips.models.gpu import Place, stay_on_host

_SORT_TOGETHER = 16  # batches whose stays are sorted by length before they are cut


@dataclass(frozen=True, eq=False)
class Batch:
    """Some stays, as rows of the per-step arrays.

    Args:
        rows: Row of each step, shape (T, B); past its end a stay's last row stands in.
        stay: Which stays, shape (B,).
        slots: Places t * B + b whose state answers a decision, shape (n,); None for all T * B.
        seen: Row of each slot: the last that the decision may see, shape (n,).
        owner: Stay of each slot, shape (n,).
        real: Whether a decision is asked at the slot, shape (n,); None if at every one. Where none
            is, `seen` is a row that answers another decision, so that looking it up does no harm.
        features: What the networks read at the rows, where that was handed over, shape
            (T, B, n_features); looked up if None.
    """

    rows: Tensor
    stay: Tensor
    slots: Tensor | None
    seen: Tensor
    owner: Tensor
    real: Tensor | None = None
    features: Tensor | None = None


@dataclass(frozen=True, eq=False)
class StepTensors:
    """What a network reads: `plain` features, or a coded sequence's two parts.

    All of it is on the network's device, but for features that do not fit there: `on_host` tells
    that these, and earlier actions, are in the host's memory; see `etips.models.gpu`.
    """

    offsets: Ints
    answers: NDArray[np.bool_]
    static: Tensor
    plain: Tensor | None
    table: Tensor | None
    code: Tensor | None
    unit: float
    previous: Tensor | None
    n_actions: int
    on_host: bool = False

    @property
    def n_stays(self) -> int:
        """Number of stays."""
        return len(self.offsets) - 1

    @cached_property
    def n_decisions(self) -> int:
        """Number of decisions."""
        return int(self.answers.sum())

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.static.device

    @property
    def n_features(self) -> int:
        """Inputs a step, earlier actions included."""
        features = self.plain if self.table is None else self.table
        assert features is not None
        return features.shape[1] + (0 if self.previous is None else self.n_actions)

    @cached_property
    def reach(self) -> Ints:
        """Steps of each stay up to the last that answers a decision, shape (n_stays,)."""
        number = np.arange(1, len(self.answers) + 1) * self.answers
        last = np.maximum.reduceat(np.append(number, 0), self.offsets[:-1])
        return np.maximum(last - self.offsets[:-1], 0)

    @cached_property
    def decision_of_row(self) -> Tensor:
        """Number of the decision that each row answers, or of the one before, shape (n_steps,)."""
        return torch.from_numpy(np.cumsum(self.answers) - 1).to(self.device)

    @cached_property
    def _on_device(self) -> tuple[Tensor, ...]:
        """First row, reach and first answering row of each stay; which rows answer."""
        rows = np.append(np.flatnonzero(self.answers), 0)
        first = rows[np.searchsorted(rows[:-1], self.offsets[:-1])]
        arrays = (self.offsets[:-1], self.reach, first, self.answers)
        return tuple(as_tensor(array, self.device) for array in arrays)

    def inputs(self, rows: Tensor) -> Tensor:
        """What the networks read at these rows, shape (*rows.shape, n_features)."""
        return self.gather(rows.cpu()).to(self.device) if self.on_host else self.gather(rows)

    def padded_features(self, stays: Ints, n_steps: int) -> Tensor:
        """The same at the rows of a padded batch of these stays, where the features are."""
        step = np.arange(n_steps)[:, None]
        rows = self.offsets[stays] + np.minimum(step, self.reach[stays] - 1)
        return self.gather(torch.from_numpy(rows))

    def gather(self, rows: Tensor) -> Tensor:
        """Features at rows that are where the features are, shape (*rows.shape, n_features)."""
        if self.plain is not None:
            features = self.plain[rows]
        else:
            assert self.table is not None
            assert self.code is not None
            features = self.table[self.code[rows]].to(torch.float32)
            features = features * self.unit if self.unit != 1.0 else features
        if self.previous is None:
            return features.to(self.static.dtype)
        actions = torch.arange(self.n_actions, device=rows.device)
        earlier = (self.previous[rows][..., None] == actions).to(features.dtype)
        return torch.cat([features, earlier], dim=-1).to(self.static.dtype)

    def batch(self, stays: Ints) -> Batch:
        """These stays as a batch; what comes after a stay's last decision is left out."""
        starts, lengths = self.offsets[stays], self.reach[stays]
        step = np.arange(lengths.max())[:, None]
        rows = starts + np.minimum(step, lengths - 1)
        place = np.flatnonzero((self.answers[rows] & (step < lengths)).ravel())
        arrays = (rows, stays, place, rows.ravel()[place], stays[place % len(stays)])
        return Batch(*(torch.from_numpy(array).to(self.device) for array in arrays))

    def padded_batch(self, stays: Tensor, count: Tensor, n_steps: int) -> Batch:
        """The first `count` of these stays as a batch whose shape depends on nothing else.

        Every place has a slot, `real` says which of them count. All of it happens on the device, so
        that it can be part of a captured step.

        Args:
            stays: Which stays, each with a decision, shape (B,).
            count: How many of them count, a tensor of one number.
            n_steps: Steps T; no stay may reach further.
        """
        start, reach, first, answers = self._on_device
        step = torch.arange(n_steps, device=self.device)[:, None]
        used = torch.arange(len(stays), device=self.device) < count
        length = reach[stays]
        rows = start[stays] + torch.minimum(step, length - 1)
        real = answers[rows] & (step < length) & used
        seen = torch.where(real, rows, first[stays])
        owner = stays.expand(n_steps, -1)
        return Batch(rows, stays, None, seen.flatten(), owner.flatten(), real.flatten())

    def batches(self, stays: Ints, size: int) -> Iterator[Batch]:
        """All `stays` that hold a decision in batches of so many, of like length."""
        return (self.batch(part) for part in self.parts(stays, size))

    def parts(
        self, stays: Ints, size: int, generator: np.random.Generator | None = None
    ) -> list[Ints]:
        """The stays of each batch; shuffled if by a generator.

        A shuffled run sorts only a few batches' worth of stays by length, so that what comes
        together still changes from epoch to epoch.
        """
        lengths = self.reach
        stays = stays[lengths[stays] > 0]
        if generator is None:
            ordered = stays[np.argsort(lengths[stays], kind="stable")]
            return [ordered[start : start + size] for start in range(0, len(ordered), size)]
        mixed = generator.permutation(stays)
        parts: list[Ints] = []
        for start in range(0, len(mixed), size * _SORT_TOGETHER):
            chunk = mixed[start : start + size * _SORT_TOGETHER]
            chunk = chunk[np.argsort(lengths[chunk], kind="stable")]
            parts += [chunk[begin : begin + size] for begin in range(0, len(chunk), size)]
        return [parts[position] for position in generator.permutation(len(parts))]


def step_tensors(
    data: Trajectories,
    *,
    earlier_actions: bool,
    device: torch.device | str = "cpu",
    features: Place = "auto",
) -> StepTensors:
    """Put scaled data on a device.

    Args:
        data: Scaled stays.
        earlier_actions: Also read the newest action logged before each decision.
        device: Where to.
        features: Whether features stay in the host's memory; if they do not fit, unless told.
    """
    device = torch.device(device)
    sequence, answers = data.sequence, np.zeros(data.n_steps, bool)
    on_host = stay_on_host(_n_bytes(sequence), device, features)
    place = torch.device("cpu") if on_host else device
    answers[data.seen_rows] = True
    plain = table = code = None
    unit = 1.0
    if isinstance(sequence, Coded):
        table, code = as_tensor(sequence.table, place), as_tensor(sequence.code, place)
        unit = sequence.unit
    else:
        plain = as_tensor(sequence, place)
    return StepTensors(
        offsets=data.offsets,
        answers=answers,
        static=as_tensor(data.static, device),
        plain=plain,
        table=table,
        code=code,
        unit=unit,
        previous=as_tensor(_newest_action(data), place) if earlier_actions else None,
        n_actions=data.n_actions,
        on_host=on_host,
    )


def _n_bytes(sequence: Features) -> int:
    if isinstance(sequence, Coded):
        return int(sequence.table.nbytes + sequence.code.nbytes)
    return int(sequence.nbytes)


def as_tensor(values: NDArray[np.generic], device: torch.device | str = "cpu") -> Tensor:
    """A tensor of the array, sharing its memory on the CPU."""
    with warnings.catch_warnings():  # torch has no read-only tensors; nothing here writes to one
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(values).to(device)


def _newest_action(data: Trajectories) -> Ints:
    """The newest action known to the decision that a row answers, -1 if there is none.

    The decision at step t + lag is answered from row t, and knows the action of step t + lag - 1.
    """
    if data.action is None:
        return np.full(data.n_steps, NO_ACTION)
    if data.lag == 1:
        return data.action
    before = np.concatenate([[NO_ACTION], data.action[:-1]])
    before[data.offsets[:-1]] = NO_ACTION
    return before
