"""Splits and folds by patient or stay, never by row."""

import hashlib
from collections.abc import Iterator

import numpy as np

from etips.data.decisions import Bools, Ints
from etips.data.trajectories import Trajectories
from etips.errors import SettingError


def split(
    data: Trajectories, *, test: float = 0.1, seed: int = 0, by_group: bool | None = None
) -> tuple[Trajectories, Trajectories]:
    """Part the stays at random into (train, test); nobody stands on both sides.

    Args:
        data: The stays to part.
        test: Share of the stays (of the patients, when split by group) that goes to the test part.
        seed: The same seed and data give the same parts.
        by_group: Keep the stays of a patient together. Done whenever the data names patients,
            unless this is False.
    """
    if not 0 < test < 1:
        raise SettingError("test", "must be a share between 0 and 1")
    units = _units(data, by_group)
    n_units = _require_units(units, 2)
    n_test = min(max(round(test * n_units), 1), n_units - 1)
    in_test = np.zeros(n_units, bool)
    in_test[np.random.default_rng(seed).permutation(n_units)[:n_test]] = True
    return data.subset(~in_test[units]), data.subset(in_test[units])


def held_out(data: Trajectories, share: float) -> Bools:
    """Which stays are kept apart, shape (n_stays,): the same ones whenever they are asked about.

    A hash of the patient, or of the stay where no patient is named, decides; so that it does not
    matter which others are there, and who is kept apart at a share is so at every larger one.
    """
    if not 0 < share < 1:
        raise SettingError("hold_out", "must be a share between 0 and 1")
    names, units = np.unique(data.stay if data.group is None else data.group, return_inverse=True)
    apart = np.array([_place_of(name) < share for name in names.tolist()], bool)
    return apart[units]


def _place_of(name: object) -> float:
    """A number in [0, 1) that a name always has; 7, 7.0 and "7" are the same."""
    whole = isinstance(name, float) and name.is_integer()
    text = f"{name:.0f}" if whole else str(name)
    digest = hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=6, key=b"held out")
    return int.from_bytes(digest.digest(), "big") / 2**48


def assign_folds(
    data: Trajectories, *, n_folds: int = 5, seed: int = 0, by_group: bool | None = None
) -> Ints:
    """Number of the fold each stay belongs to, 0..n_folds-1, shape (n_stays,).

    Args:
        data: The stays to part.
        n_folds: Number of folds; they differ by at most one stay (or patient) in size.
        seed: The same seed and data give the same folds.
        by_group: As in `split`.
    """
    if n_folds < 2:
        raise SettingError("n_folds", "must be at least 2")
    units = _units(data, by_group)
    n_units = _require_units(units, n_folds)
    fold_of_unit = np.empty(n_units, np.int64)
    fold_of_unit[np.random.default_rng(seed).permutation(n_units)] = np.arange(n_units) % n_folds
    return fold_of_unit[units]


def folds(
    data: Trajectories, *, n_folds: int = 5, seed: int = 0, by_group: bool | None = None
) -> Iterator[tuple[Trajectories, Trajectories]]:
    """Each fold in turn as (the other folds, this fold); arguments as in `assign_folds`."""
    fold = assign_folds(data, n_folds=n_folds, seed=seed, by_group=by_group)
    return ((data.subset(fold != k), data.subset(fold == k)) for k in range(n_folds))


def _units(data: Trajectories, by_group: bool | None) -> Ints:
    """What is kept together, numbered from 0, for each stay."""
    if by_group and data.group is None:
        raise SettingError("by_group", "needs data that names a group column")
    return np.unique(data.stay, return_inverse=True)[1] if by_group is False else data.units


def _require_units(units: Ints, least: int) -> int:
    n_units = int(units.max()) + 1
    if n_units < least:
        raise SettingError(
            "split", f"needs at least {least} stays or patients, there are {n_units}"
        )
    return n_units
