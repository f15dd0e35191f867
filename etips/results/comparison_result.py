"""A comparison as data: policies and the clinicians in pairs, and place by place.

No count of 1 to 10 people gets in; see `etips.results.compare_policies`, which makes it.
"""

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal

from etips.results.conclusions import Conclusion, Kind
from etips.results.records import STRICT, DataSummary, Label, to_json
from etips.results.results import Library, join_reasons, make_frame

CLINICIANS = "clinicians"
"""What results call what was done."""

_PAGE, _NOTEBOOK = "etips.report.comparison_page", "etips.report.tables"
"""How a comparison looks is decided in layers above it, imported by name when asked for."""

COLUMNS = (
    *("first", "second", "difference", "std_error", "low", "high"),
    *("p_value", "adjusted_p", "finding", "verdict", "reasons"),
)


@dataclass(frozen=True)
class Figure:
    """A number with its interval; None where there is none, or where it is hidden."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    std_error: float | None = None


@dataclass(frozen=True)
class ComparedPolicy:
    """One policy, or the clinicians: overall, or in one place.

    Args:
        difference: Of its risk to what was done there; only of a place.
        verdict: Whether the log can carry it; None for what was done, which was seen.
        sentence: What a rule says.
    """

    name: str
    risk: Figure
    verdict: Label | None
    reasons: tuple[str, ...] = ()
    difference: Figure = field(default_factory=Figure)
    in_sample: bool = False
    sentence: str | None = None
    truth: float | None = None


@dataclass(frozen=True)
class PairResult:
    """The risk of one policy minus that of another, on the same stays.

    Args:
        adjusted_p: The same after Holm's correction for all pairs of the comparison.
        differs: Whether a difference is shown; None where it is hidden.
        finding: What a page colours by, verdict included.
    """

    first: str
    second: str
    difference: Figure
    p_value: float | None
    adjusted_p: float | None
    differs: bool | None
    verdict: Label | None
    reasons: tuple[str, ...]
    finding: Kind
    words: str

    @property
    def conclusion(self) -> Conclusion:
        """Kind and words together."""
        return Conclusion(self.finding, self.words)


@dataclass(frozen=True)
class PlaceResult:
    """One place: a site, a ward, a year.

    Args:
        level: What it is called; not told of a place that few people were in.
        n_people: People there; None where hidden, and then there are no figures.
        figures: Clinicians first, then each policy.
    """

    level: str
    n_people: int | None = None
    n_decisions: int | None = None
    figures: tuple[ComparedPolicy, ...] = ()


@dataclass(frozen=True)
class AlikeResult:
    """Whether places differ in a quantity.

    Args:
        quantity: Its risk, or its difference to what was done there.
        i_squared: Share of the spread that chance does not explain.
    """

    policy: str
    quantity: Literal["risk", "difference"]
    q: float | None
    freedom: int
    p_value: float | None
    adjusted_p: float | None
    i_squared: float | None
    words: str


@dataclass(frozen=True)
class CarriedResult:
    """The figure of one place among the patients of another.

    Args:
        source: Where the decisions are from.
        target: Whose case mix they are given.
        here: Risk in the source as it is.
        carried: Risk in the source with the target's case mix; empty where overlap is poor.
        there: Risk in the target as it is.
        remaining: Carried minus there: what case mix does not explain.
    """

    policy: str
    source: str
    target: str
    here: Figure
    carried: Figure
    there: Figure
    remaining: Figure
    verdict: Label | None


@dataclass(frozen=True)
class OverlapResult:
    """How far the patients of one place stand in for those of another.

    Args:
        source: Where the decisions are from.
        target: Whose case mix they are given.
        effective_share: Share of the source's decisions that the weighted ones are worth.
        discrimination: Share of pairs, one of each place, that can be told apart; 0.5 for none.
        prognosis_before: Expected loss in the target minus that in the source.
    """

    source: str
    target: str
    overlap: Literal["good", "fair", "poor"]
    effective_share: float | None
    discrimination: float | None
    prognosis_before: float | None
    prognosis_after: float | None
    words: str


@dataclass(frozen=True)
class PlacesResult:
    """A comparison place by place."""

    column: str
    places: tuple[PlaceResult, ...]
    alike: tuple[AlikeResult, ...] = ()
    overlaps: tuple[OverlapResult, ...] = ()
    carried: tuple[CarriedResult, ...] = ()


WIDTH = 80
_PLOT = 23  # odd, so that zero has a place in the middle
_FIGURES = 26  # +0.0000 [+0.0000, +0.0000]


@dataclass(frozen=True)
class Bar:
    """One line of a forest plot: what is compared, the difference, its limits, the finding."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    words: str = ""


def draw_bars(bars: Sequence[Bar], *, width: int = WIDTH) -> list[str]:
    """A forest plot in letters, no line longer than `width`; the finding stands below its line.

    Zero is in the middle: left of it the first of a pair has the lower risk.
    """
    every = [end for bar in bars for end in (bar.value, bar.low, bar.high)]
    ends = [abs(end) for end in every if end is not None and math.isfinite(end)]
    most = max(ends, default=1.0) or 1.0
    power = 10.0 ** math.floor(math.log10(most))
    unit = next(unit for unit in (1, 2, 5, 10) if unit * power >= most * (1 - 1e-9))
    reach = float(f"{unit * power:.3g}")
    room = width - _PLOT - _FIGURES - 4
    longest = max((len(bar.label) for bar in bars), default=0)
    wrap = textwrap.TextWrapper(width - 2, break_long_words=False, break_on_hyphens=False)
    lines = [f"{'':{room}}  {f'{-reach:g}':<{_PLOT // 2}}0{f'+{reach:g}':>{_PLOT // 2}}"]
    for bar in bars:
        label = bar.label if len(bar.label) <= room else bar.label[: room - 1] + "…"
        lines.append(f"{label:<{room}}  {draw_bar(bar, reach)}  {_figures(bar)}".rstrip())
        below = [bar.label, bar.words] if longest > room and bar.label != label else [bar.words]
        for text in below:
            lines += [f"  {part}" for part in wrap.wrap(text)]
    return lines


def draw_bar(bar: Bar, reach: float) -> str:
    """`---o---` on a line from `-reach` to `reach`; a limit beyond ends in an arrow."""
    cells = [" "] * _PLOT
    middle = _PLOT // 2
    cells[middle] = ":"
    if bar.value is None:
        return "".join(cells)
    low = bar.value if bar.low is None else bar.low
    high = bar.value if bar.high is None else bar.high

    def at(value: float) -> int:
        share = min(max(value / reach, -1.0), 1.0)
        return round((share + 1) / 2 * (_PLOT - 1))

    for place in range(at(low), at(high) + 1):
        cells[place] = "+" if place == middle else "-"
    if low < -reach:
        cells[0] = "<"
    if high > reach:
        cells[-1] = ">"
    cells[at(bar.value)] = "o"
    return "".join(cells)


def _figures(bar: Bar) -> str:
    if bar.value is None:
        return "hidden or not known"
    # what rounds to nothing has no sign of its own
    value, *limits = (
        "?" if number is None else f"{round(number, 4) + 0.0:+.4f}"
        for number in (bar.value, bar.low, bar.high)
    )
    return value if "?" in limits else f"{value} [{', '.join(limits)}]"


@dataclass(frozen=True)
class Comparison:
    """Policies and the clinicians against each other, on the same decisions.

    Print it, look at it in a notebook, take it as a frame (`to_frame`), write it as a page
    (`report`) or as JSON (`to_json`).

    Args:
        reference: Whom the others were compared with; None where every pair was.
    """

    __pydantic_config__: ClassVar[dict[str, object]] = STRICT

    data: DataSummary
    policies: tuple[ComparedPolicy, ...]
    pairs: tuple[PairResult, ...]
    estimator: str
    reference: str | None = None
    places: PlacesResult | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    seconds: float = 0.0

    def to_json(self) -> dict[str, object]:
        """As a JSON document."""
        return to_json(self)

    def to_frame(self, *, library: Library | None = None) -> Any:  # noqa: ANN401  # a foreign object
        """One row a pair: difference, interval, p-values, finding, verdict.

        Args:
            library: "pandas" or "polars"; left out, pandas where it is installed, else polars.
        """
        rows = []
        for pair in self.pairs:
            apart = pair.difference
            values = (
                *(pair.first, pair.second, apart.value, apart.std_error, apart.low, apart.high),
                *(pair.p_value, pair.adjusted_p, pair.words, pair.verdict),
                join_reasons(pair.reasons),
            )
            rows.append(dict(zip(COLUMNS, values, strict=True)))
        return make_frame(rows, COLUMNS, library)

    def report(self, path: str | PathLike[str]) -> Path:
        """Write the page of the comparison; a file that is there already is replaced.

        Args:
            path: Ends in .html, or in .json for the figures alone.
        """
        written: Path = import_module(_PAGE).write_comparison(self, Path(path))
        return written

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        shown: str = import_module(_NOTEBOOK).show_pairs(self)
        return shown

    def __repr__(self) -> str:
        bars = []
        for pair in self.pairs:
            apart = pair.difference
            label = f"{pair.first} - {pair.second}"
            bars.append(Bar(label, apart.value, apart.low, apart.high, pair.words))
        return "\n".join([f"Comparison of {len(self.policies)} ways to decide", *draw_bars(bars)])
