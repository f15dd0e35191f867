"""The result of a study: an evaluation with the study's own tables, charts and folds beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from etips.results.exhibits import require_even
from etips.results.records import PathCandidate, Record
from etips.results.results import Results

Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Table:
    """A table as a page shows it."""

    title: str
    note: str | None
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError("has rows that do not fit its columns")


@dataclass(frozen=True)
class Series:
    """Points of a chart that belong together.

    Args:
        x: Numbers, or names; None is missing.
        error: Half the length of each bar of error, if there are any.
    """

    name: str
    x: tuple[str | float | None, ...]
    y: tuple[float | None, ...]
    error: tuple[float | None, ...] | None = None

    def __post_init__(self) -> None:
        require_even(self.x, self.y, self.y if self.error is None else self.error)


@dataclass(frozen=True)
class Chart:
    """A figure as data."""

    name: str
    kind: Literal["scatter", "bars", "lines"]
    title: str
    caption: str | None
    x: str
    y: str
    series: tuple[Series, ...]


@dataclass(frozen=True)
class PropensityQuality:
    """How good fitted propensities are on what they did not learn from."""

    log_loss: float | None
    accuracy: float | None
    calibration_error: float | None


@dataclass(frozen=True, kw_only=True)
class FitRecord:
    """What the task that fitted a fold's policy said of it.

    Args:
        n_learned_from: Stays it might learn from; None where that would tell of a few.
        n_held_out: Stays it was judged on; likewise.
        support: Least propensity of an action it may recommend.
    """

    n_learned_from: int | None
    n_held_out: int | None
    quality: PropensityQuality | None = None
    support: float | None = None
    clipped_share: float | None = None
    path: tuple[PathCandidate, ...] = ()


@dataclass(frozen=True)
class Measures:
    """One policy on one fold; None where a figure does not exist, or must not be shown.

    Args:
        atenp: Mean loss of matched decisions minus that of the others.
        risk: True risk of what the policy does, in a world that knows it.
        drawn_risk: True risk of drawing actions from its probabilities.
    """

    accuracy: float | None
    matching_factor: float | None
    snips: float | None
    ips: float | None
    dr: float | None
    atenp: float | None
    n_matched: int | None
    n_unmatched: int | None
    risk: float | None
    drawn_risk: float | None


@dataclass(frozen=True)
class FoldResult(Measures, FitRecord):
    """What the policy of one fold scored where it was held out, and how it was fitted."""


@dataclass(frozen=True)
class StudyRecord:
    """What was studied, and what each fold of each method scored."""

    experiment: Record
    folds: Mapping[str, tuple[FoldResult, ...]]


@dataclass(frozen=True, repr=False)
class StudyResult(Results):
    """Results of a study."""

    title: str | None = None
    lead: str | None = None
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    study: StudyRecord | None = None
