"""Continuous doses as a few classes: none, then quantiles of what was given (the paper's rule)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, product
from typing import Self

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.disclosure import LEAST_PEOPLE
from etips.errors import DataError, SettingError, require, require_whole

_MOST_BINS = 50  # more classes of one dose hold too few patients each to learn from

_BRACKETED = re.compile(r"^(?P<name>.*\S)\s*[\[(](?P<unit>[^\])]{1,20})[\])]\s*$")
_TIMES = ("s", "sec", "min", "minute", "h", "hr", "hour", "d", "day")
_AMOUNT, _PER = "ml|l|mg|g|mcg|ug|ng|iu|units?|meq|mmol", "kg|h|hr|min|day|d|m2"
_SUFFIXED = re.compile(
    rf"^(?P<name>.*\S)_(?P<unit>(?:{_AMOUNT})(?:_(?:per_)?(?:{_PER}))*)$", re.IGNORECASE
)


def rank_classes(dose: Floats, n_given: int) -> Ints:
    """Class 0 for no dose; else ceil(n q), q the mid-rank over the number of non-zero doses.

    Args:
        dose: Shape (n,), none missing.
        n_given: Classes of what was given.
    """
    classes = np.zeros(dose.shape, np.int64)
    given = dose != 0
    if given.any():
        _, inverse, count = np.unique(dose[given], return_inverse=True, return_counts=True)
        rank = (np.cumsum(count) - (count - 1) / 2)[inverse]  # mid-rank of ties, from 1
        # n * rank is a multiple of a half, so exact: no epsilon is needed to keep q = 1 / n low
        classes[given] = np.ceil(n_given * rank / given.sum()).astype(np.int64)
    return classes


def given_quantiles(dose: Floats, n_given: int) -> Floats:
    """Quantiles of the non-zero doses between the classes, `n_given - 1`; NaN without any dose."""
    given = dose[dose != 0]
    if not given.size:
        return np.full(n_given - 1, np.nan)
    edges: Floats = np.quantile(given, np.arange(1, n_given) / n_given, method="hazen")
    return edges


def edge_classes(dose: Floats, edges: Floats) -> Ints:
    """Class by edges: 0 none, 1 up to and including the first edge, ... the last above the last."""
    upper = np.searchsorted(edges, dose, side="left") if np.isfinite(edges).all() else 0
    return np.where(dose == 0, 0, 1 + upper).astype(np.int64)


def separating_edges(dose: Floats, classes: Ints, edges: Floats) -> Floats:
    """The edges next to these that put every dose into its class, as far as any can.

    Args:
        dose: Shape (n,).
        classes: Of each dose, 0 none, shape (n,).
        edges: As many as there are between the classes of what was given.
    """
    found = []
    for number, edge in enumerate(edges, start=1):
        low = dose[(classes > 0) & (classes <= number)].max(initial=0.0)
        high = dose[classes > number].min(initial=np.inf)
        middle = low + (high - low) / 2
        found.append(edge if low <= edge < high else middle if low <= middle < high else low)
    return np.array(found, dtype=np.float64)


@dataclass(frozen=True)
class DoseClasses:
    """How one dose was put into classes, so that another table can be read alike.

    Class 0 is none where somebody got none; the others hold what was given, in rising order. The
    smallest and the largest dose are somebody's own, so that the outer classes have no such limit.

    Args:
        column: Column of the table.
        edges: Between the classes of what was given, rising; a dose on an edge is in the lower.
        medians: Of the doses in each class; None where fewer than eleven people had it.
        none: Whether there is a class of no dose.
        unit: Of the dose, if the column's name tells it.
    """

    column: str
    edges: tuple[float, ...]
    medians: tuple[float | None, ...]
    none: bool = True
    unit: str = ""

    def __post_init__(self) -> None:
        limits = (0.0, *self.edges, np.inf)
        if not all(low < high for low, high in pairwise(limits)):
            raise SettingError(f"dose {self.column}", "edges must be above 0 and rise")
        if len(self.medians) != self.n_classes:
            raise SettingError(f"dose {self.column}", "must have a median for each class")

    @classmethod
    def fit(cls, column: str, dose: Floats, *, bins: int, people: Ints | None = None) -> Self:
        """Find the classes of a log.

        Args:
            column: Name of the column.
            dose: NaN where missing, shape (n,).
            bins: Classes wanted, none included; few distinct doses give fewer.
            people: Whom each row belongs to; the rows themselves if left out.
        """
        known = ~np.isnan(dose)
        values, none = dose[known], bool((dose == 0).any())
        n_given = bins - 1 if none else bins
        classes = rank_classes(values, n_given)
        edges: list[float] = []
        wanted = separating_edges(values, classes, given_quantiles(values, n_given)).tolist()
        for at, edge in enumerate(wanted, start=1):
            start = edges[-1] if edges else 0.0
            above = (classes > at).any()  # classes that ties leave empty are left out
            if above and ((values > start) & (values <= edge)).any():
                edges.append(edge)
        whom = np.arange(values.size) if people is None else people[known]
        unit = split_unit(column)[1]
        return cls.between(column, values, np.array(edges), people=whom, unit=unit, none=none)

    @classmethod
    def between(
        cls,
        column: str,
        dose: Floats,
        edges: Floats,
        *,
        people: Ints,
        unit: str = "",
        none: bool = True,
    ) -> Self:
        """Classes between known edges, with the medians of a log."""
        classes = edge_classes(dose, edges) - (0 if none else 1)
        medians = tuple(
            float(np.median(dose[classes == k]))
            if np.unique(people[classes == k]).size >= LEAST_PEOPLE
            else None
            for k in range(edges.size + 1 + none)
        )
        return cls(column, tuple(float(edge) for edge in edges), medians, none, unit)

    @property
    def n_classes(self) -> int:
        """Number of classes, none included."""
        return len(self.edges) + 1 + self.none

    @property
    def name(self) -> str:
        """The column's name without its unit."""
        return split_unit(self.column)[0]

    @cached_property
    def ranges(self) -> tuple[tuple[float, float | None], ...]:
        """Lower and upper end of each class; the last has no upper end."""
        first: list[tuple[float, float | None]] = [(0.0, 0.0)] if self.none else []
        return (*first, *pairwise((0.0, *self.edges)), ((0.0, *self.edges)[-1], None))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """What the classes are called: "none", "up to 250", "250-500", "over 500"."""
        shown = _round_apart(self.edges)
        if not shown:
            return ("none", "some") if self.none else ("some",)
        middle = [
            f"{low} to {high}" if "e" in low + high else f"{low}-{high}"
            for low, high in pairwise(shown)
        ]
        return (*(["none"] if self.none else []), f"up to {shown[0]}", *middle, f"over {shown[-1]}")

    @cached_property
    def descriptions(self) -> tuple[str, ...]:
        """The classes at length: "250-500 (median 400 ml)"."""
        described = []
        for label, median in zip(self.labels, self.medians, strict=True):
            if label == "none":
                described.append(label)
            elif median is None:
                described.append(f"{label} ({self.unit})" if self.unit else label)
            else:
                described.append(f"{label} (median {f'{_short(median)} {self.unit}'.rstrip()})")
        return tuple(described)

    def apply(self, where: str, dose: Floats) -> Ints:
        """Class of each dose, -1 where it is missing."""
        known = ~np.isnan(dose)
        if not self.none:
            rule = "must be above 0: nobody had none where the classes were made"
            fix = "Leave the cell empty at steps without a decision."
            require(where, rule, (dose != 0) | ~known, fix=fix)
        classes = np.full(dose.shape, -1, np.int64)
        classes[known] = edge_classes(dose[known], np.array(self.edges)) - (0 if self.none else 1)
        return classes


def require_doses(dose: Sequence[str], bins: int) -> None:
    """Refuse more than two doses, one twice, and a number of classes that makes no sense."""
    if len(dose) > 2:
        fix = "Name one or two columns."
        raise SettingError("dose", "must be one or two columns", fix=fix)
    if len(set(dose)) != len(dose):
        raise SettingError("dose", "must not name a column twice")
    require_whole("bins", bins, least=2)
    if bins > _MOST_BINS:
        raise SettingError("bins", f"must be in 2..{_MOST_BINS}")


def require_dose_values(where: str, dose: Floats, *, some: bool = True) -> None:
    """Refuse doses below 0 or infinite, and, if `some` are wanted, a column without any."""
    known = ~np.isnan(dose)
    fix = "A dose is 0 where none was given, and empty where it is not known."
    require(where, "must be a dose of 0 or more", ((dose >= 0) & (dose < np.inf)) | ~known, fix=fix)
    if some and not (dose[known] > 0).any():
        raise DataError(where, "must hold at least one dose above 0", fix="Is it the dose?")


def action_of(classes: Sequence[Ints], counts: Sequence[int]) -> Ints:
    """One action of the classes of one or two doses, the first the slow index; -1 if one is."""
    action, missing = np.zeros_like(classes[0]), np.zeros(classes[0].shape, bool)
    for own, count in zip(classes, counts, strict=True):
        action = action * count + own
        missing |= own < 0
    return np.where(missing, -1, action)


def dose_names(doses: Sequence[DoseClasses]) -> tuple[str, ...]:
    """What the actions of one or two doses are called, "fluid 250-500, vaso none" say."""
    own = [[f"{dose.name} {label}" for label in dose.labels] for dose in doses]
    return tuple(", ".join(names) for names in product(*own))


def split_unit(column: str) -> tuple[str, str]:
    """Name and unit of a column such as `fluid (ml)`, `fluid [ml]` or `fluid_ml`."""
    parts = _BRACKETED.match(column) or _SUFFIXED.match(column)
    if parts is None:
        return column, ""
    unit = parts["unit"].strip()
    return parts["name"], unit if "/" in unit else re.sub(r"_(?:per_)?", "/", unit)


def is_rate(column: str) -> bool:
    """Whether a column's unit is one per time, such as `vaso [mcg/kg/min]`."""
    unit = split_unit(column)[1].lower().replace(" per ", "/")
    return any(part.strip() in _TIMES for part in unit.split("/")[1:])


def _round_apart(edges: Sequence[float]) -> tuple[str, ...]:
    """Edges with as few digits as tell them apart, three at least."""
    for digits in range(3, 18):
        shown = tuple(_short(edge, digits) for edge in edges)
        if len(set(shown)) == len(shown):
            return shown
    return tuple(repr(edge) for edge in edges)


def _short(value: float, digits: int = 3) -> str:
    """A number with at most so many digits, never as a power of ten below a million."""
    whole = 10**digits <= abs(value) < 10**6
    return f"{value:.0f}" if whole else f"{value:.{digits}g}"
