"""Dose classes and the 25 actions (docs/cohort/rules.md section 17)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from etips.cohorts.sepsis3.grid import Bools, Floats, Ints
from etips.data.intake import dose_classes

N_CLASSES = 5
N_ACTIONS = N_CLASSES**2
_N_GIVEN = N_CLASSES - 1  # what is left beside none


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
    """Class 1 for no dose, then 2 to 5 by the quarter that a dose's mid-rank falls into."""
    classes: Ints = 1 + dose_classes.rank_classes(dose, _N_GIVEN)
    return classes


def quartiles(dose: Floats) -> Floats:
    """Edges between the classes 2 to 5: quartiles of the non-zero doses."""
    return dose_classes.given_quantiles(dose, _N_GIVEN)


def edge_classes(dose: Floats, edges: Floats) -> Ints:
    """Class by edges fitted elsewhere: 2 up to and including the first, ... 5 above the last."""
    classes: Ints = 1 + dose_classes.edge_classes(dose, edges)
    return classes


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
    return dose_classes.action_of((fluid_class - 1, vasopressor_class - 1), (N_CLASSES, N_CLASSES))
