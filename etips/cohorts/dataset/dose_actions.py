"""Dose classes and the 25 actions, losses and samples, and which stays a fit may look at.

The rules: docs/cohort/rules.md sections 17, 18 and 19.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl

from etips.cohorts.sepsis3.grid import Bools, Floats, Ints
from etips.cohorts.sepsis3.rules import Rules
from etips.data.decisions import sofa_change_loss
from etips.data.intake import dose_classes

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


def classify(dose: Floats, *, training: Bools | None = None) -> tuple[Ints, DoseClasses]:
    """Put doses into class 1, none, or 2 to 5 by the quarter of what was given.

    Args:
        dose: Shape (n,).
        training: Rows that the edges come from, a dose on an edge in the lower class; by the
            mid-rank of a dose over all rows if left out.
    """
    if training is None:
        edges = dose_classes.given_quantiles(dose, N_CLASSES - 1)
        classes: Ints = 1 + dose_classes.rank_classes(dose, N_CLASSES - 1)
    else:
        edges = dose_classes.given_quantiles(dose[training], N_CLASSES - 1)
        classes = 1 + dose_classes.edge_classes(dose, edges)
    members = [dose[classes == k] for k in range(1, N_CLASSES + 1)]
    return classes, DoseClasses(
        edges=tuple(float(edge) for edge in edges),
        medians=tuple(float(np.median(m)) if m.size else float("nan") for m in members),
        counts=tuple(int(m.size) for m in members),
    )


def action_of(fluid_class: Ints, vasopressor_class: Ints) -> Ints:
    """Action 0 to 24; fluid is the slow index."""
    return dose_classes.action_of((fluid_class - 1, vasopressor_class - 1), (N_CLASSES, N_CLASSES))


def add_samples(table: pl.DataFrame) -> pl.DataFrame:
    """Add rows_before, the next SOFA by block and by row, both losses, and the flags A, B, C.

    A: not the first row, and the next block exists (the rule of section 18.2). B: the previous
    block exists as well. C: not the first row, and there is a next row.

    Args:
        table: icustayid, bloc, SOFA, sorted by stay and block.
    """
    stay, bloc = "icustayid", pl.col("bloc")
    next_bloc, last_bloc = bloc.shift(-1).over(stay), bloc.shift(1).over(stay)
    next_sofa = pl.col("SOFA").shift(-1).over(stay)
    adjacent = (next_bloc == bloc + 1).fill_null(False)
    rows = table.with_columns(
        rows_before=pl.int_range(pl.len()).over(stay),
        SOFA_next_bloc=pl.when(adjacent).then(next_sofa),
        SOFA_next_row=next_sofa,
    )
    later = pl.col("rows_before") > 0
    rows = rows.with_columns(
        sample_A=later & adjacent,
        sample_B=later & adjacent & (last_bloc == bloc - 1).fill_null(False),
        sample_C=later & pl.col("SOFA_next_row").is_not_null(),
    )
    sofa = rows["SOFA"].to_numpy().astype(np.float64)
    for end in ("next_bloc", "next_row"):
        following = rows[f"SOFA_{end}"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        loss = pl.Series(f"loss_{end}", sofa_change_loss(sofa, following))
        rows = rows.with_columns(loss.fill_nan(None))
    return rows


def training_stays(stays: pl.DataFrame, rules: Rules) -> frozenset[int]:
    """Stays of the patients not held out; a patient is never on both sides."""
    patients = stays["patient"].unique().sort()
    shuffled = np.random.default_rng(rules.split_seed).permutation(patients.to_numpy())
    held_out = shuffled[: round(rules.test_share * shuffled.size)]
    training = stays.filter(~pl.col("patient").is_in(pl.Series(held_out).implode()))
    return frozenset(training["stay"].to_list())
