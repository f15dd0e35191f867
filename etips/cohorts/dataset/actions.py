"""Dose classes and the 25 actions (docs/cohort/rules.md section 17)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from etips.cohorts.sepsis3.grid import Bools, Floats, Ints

N_CLASSES = 5
N_ACTIONS = N_CLASSES**2


@dataclass(frozen=True)
class DoseClasses:
    """How one drug's doses were put into classes 1 to 5.

    Attributes:
        edges: Quartiles of the non-zero doses, three of them; NaN without any.
        medians: Median dose of each class, NaN for an empty one.
        counts: Rows in each class.
    """

    edges: tuple[float, ...]
    medians: tuple[float, ...]
    counts: tuple[int, ...]

    @classmethod
    def from_json(cls, content: Mapping[str, Sequence[float | None]]) -> Self:
        """Read what `doses.json` says of one drug; null stands for no number."""
        edges, medians, counts = (
            tuple(math.nan if number is None else number for number in content[name])
            for name in ("edges", "medians", "counts")
        )
        return cls(edges, medians, tuple(int(count) for count in counts))


def rank_classes(dose: Floats) -> Ints:
    """Class 1 for no dose; else 1 + ceil(4 q), q the mid-rank over the number of non-zero doses."""
    classes = np.ones(dose.shape, np.int64)
    given = dose != 0
    if given.any():
        _, inverse, count = np.unique(dose[given], return_inverse=True, return_counts=True)
        rank = (np.cumsum(count) - (count - 1) / 2)[inverse]  # mid-rank of ties, from 1
        # 4 * rank is a multiple of 2, so exact: no epsilon is needed to keep q = 0.25 in class 2
        classes[given] = 1 + np.ceil(4 * rank / given.sum()).astype(np.int64)
    return classes


def quartiles(dose: Floats) -> Floats:
    """Edges between the classes 2 to 5: quartiles of the non-zero doses."""
    given = dose[dose != 0]
    if not given.size:
        return np.full(3, np.nan)
    edges: Floats = np.quantile(given, (0.25, 0.5, 0.75), method="hazen")
    return edges


def edge_classes(dose: Floats, edges: Floats) -> Ints:
    """Class by edges fitted elsewhere: 2 up to and including the first, ... 5 above the last."""
    upper = np.searchsorted(edges, dose, side="left") if np.isfinite(edges).all() else 0
    return np.where(dose == 0, 1, 2 + upper).astype(np.int64)


def classify(dose: Floats, *, training: Bools | None = None) -> tuple[Ints, DoseClasses]:
    """Put doses into classes.

    Args:
        dose: Shape (n,).
        training: Rows that the edges come from; by rank over all rows if left out.
    """
    if training is None:
        edges, classes = quartiles(dose), rank_classes(dose)
    else:
        edges = quartiles(dose[training])
        classes = edge_classes(dose, edges)
    members = [dose[classes == k] for k in range(1, N_CLASSES + 1)]
    return classes, DoseClasses(
        edges=tuple(float(edge) for edge in edges),
        medians=tuple(float(np.median(m)) if m.size else float("nan") for m in members),
        counts=tuple(int(m.size) for m in members),
    )


def action_of(fluid_class: Ints, vasopressor_class: Ints) -> Ints:
    """Action 0 to 24; fluid is the slow index."""
    action: Ints = N_CLASSES * (fluid_class - 1) + (vasopressor_class - 1)
    return action
