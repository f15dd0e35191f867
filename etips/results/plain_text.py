"""Results as rows, frames and lines of text: a verdict stands beside each number."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from etips.errors import SettingError
from etips.results.conclusions import conclude
from etips.results.records import DataSummary, EstimateResult, GainResult, MethodResult

Library = Literal["pandas", "polars"]

Value = str | float | bool | None
"""Of a cell; None is hidden or not known."""

COLUMNS = (
    *("policy", "verdict", "estimator", "risk", "std_error", "low", "high"),
    *("difference", "difference_low", "difference_high", "better"),
    *("better_at_one_decision", "in_sample"),
    *("matching_factor", "effective_sample_size", "true_risk", "finding", "reasons"),
)
"""Of a row, in this order."""

_NO_ESTIMATE = EstimateResult("none", risk=None, std_error=None, low=None, high=None)


def flat_rows(
    methods: Iterable[MethodResult], data: DataSummary, *, every_estimator: bool = False
) -> list[Mapping[str, Value]]:
    """One row a policy, of the headline alone, or one a policy and estimator."""
    return [row for own in methods for row in _rows(own, data, every=every_estimator)]


def _rows(method: MethodResult, data: DataSummary, *, every: bool) -> Iterator[Mapping[str, Value]]:
    gain, diagnostics = method.gain or GainResult(), method.diagnostics
    estimates = method.estimates or (_NO_ESTIMATE,)
    for estimate in estimates if every else estimates[:1]:
        values: tuple[Value, ...] = (
            method.name,
            method.verdict or "no verdict",
            estimate.estimator,
            *(estimate.risk, estimate.std_error, estimate.low, estimate.high),
            *(gain.difference, gain.low, gain.high, gain.better),
            *(gain.better_at_one_decision, method.in_sample),
            None if diagnostics is None else diagnostics.matching_factor,
            None if diagnostics is None else diagnostics.effective_sample_size,
            method.truth,
            conclude(method, data).words,
            join_reasons(method.reasons),
        )
        yield dict(zip(COLUMNS, values, strict=True))


def join_reasons(reasons: Iterable[str]) -> str:
    """Reasons of a verdict in one cell."""
    return "; ".join(reason.rstrip(".") for reason in reasons)


def make_frame(
    rows: Sequence[Mapping[str, object]], names: Sequence[str], library: Library | None = None
) -> Any:  # noqa: ANN401  # a foreign object
    """A frame of rows that have the same columns: of pandas where it is installed, else polars."""
    if library not in (None, "pandas", "polars"):
        raise SettingError("library", "must be pandas or polars")
    if library is None:
        library = "pandas" if find_spec("pandas") is not None else "polars"
    if library == "pandas" and find_spec("pandas") is None:
        raise SettingError("library", "must be polars: pandas is not installed")
    return import_module(library).DataFrame({name: [row[name] for row in rows] for name in names})


def describe(title: str, methods: Iterable[MethodResult], data: DataSummary) -> str:
    """The lines that Python prints of results."""
    loss = "" if data.mean_loss is None else f", mean logged loss {data.mean_loss:.4f}"
    lines = [f"{title} on {_shown(data.n_decisions, ',')} decisions{loss}"]
    for method in methods:
        words = conclude(method, data).words
        verdict = method.verdict or "no verdict"
        lines.append(f"  {method.name}: {words if verdict in words else f'{words} ({verdict})'}")
        for estimate in method.estimates[:1]:
            limits = f"[{_shown(estimate.low)}, {_shown(estimate.high)}]"
            lines.append(f"    {estimate.estimator} {_shown(estimate.risk)} {limits}")
        gain = method.gain
        if gain is not None and gain.difference is not None:
            limits = f"[{_shown(gain.low, '+.4f')}, {_shown(gain.high, '+.4f')}]"
            lines.append(f"    against the clinicians {gain.difference:+.4f} {limits}")
        lines += [f"    why {verdict}: {reason}" for reason in method.reasons]
    return "\n".join(lines)


def _shown(value: float | None, form: str = ".4f") -> str:
    return "?" if value is None else format(value, form)


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
