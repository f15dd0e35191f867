"""Who learns and who is held out: the folds of a study, as masks over its stays."""

from dataclasses import dataclass

import numpy as np

from etips.data.decisions import Bools
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.errors import SettingError


@dataclass(frozen=True, eq=False)
class Part:
    """One fold of a study.

    Args:
        learn: Stays a method may learn from, shape (n_stays,).
        held: Stays it is judged on.
        spare: Stays that neither see: in Table I the fold itself, which the paper stops by.
    """

    learn: Bools
    held: Bools
    spare: Bools


@dataclass(frozen=True)
class Dealing:
    """How the stays of a study are dealt into its folds.

    Args:
        table: Which of the paper's two ways: "table1" or "table2".
        folds: How many folds.
        seed: Of the dealing.
    """

    table: str
    folds: int
    seed: int

    @property
    def has_test_part(self) -> bool:
        """Whether all folds are judged on one test part, which none learns from."""
        return self.table == "table1"

    def part(self, data: Trajectories, fold: int) -> Part:
        """One fold of the study, from 0."""
        if self.has_test_part:
            return leading_part(data.n_stays, folds=self.folds, fold=fold)
        return dealt_part(data, folds=self.folds, fold=fold, seed=self.seed)


def leading_part(n: int, *, folds: int, fold: int) -> Part:
    """The paper's Table I: the first tenth is every fold's test part, and nothing is shuffled.

    The rest is cut into folds one after the other; a method learns from all of them but its own.

    Args:
        n: Samples.
        folds: How many folds.
        fold: Which, from 0.
    """
    if n < 10 * folds:
        raise SettingError("n", f"must be at least {10 * folds} for {folds} folds")
    place, spare = np.arange(n), np.zeros(n, bool)
    held = place < n // 10
    spare[np.array_split(place[~held], folds)[fold]] = True
    return Part(~held & ~spare, held, spare)


def dealt_part(data: Trajectories, *, folds: int, fold: int, seed: int) -> Part:
    """Table II: stays (patients, where they are known) are dealt at random, each held out once.

    Args:
        data: The stays.
        folds: How many folds.
        fold: Which, from 0.
        seed: Of the dealing.
    """
    held = assign_folds(data, n_folds=folds, seed=seed) == fold
    return Part(~held, held, np.zeros(data.n_stays, bool))
