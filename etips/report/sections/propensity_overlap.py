"""Overlap and propensities: how weights spread, whether actions are taken as often as stated."""

from collections.abc import Sequence
from itertools import pairwise

from etips.report.plots import Guides, plot
from etips.report.section import Figure, Section
from etips.report.wording import number, percent
from etips.results.calibration_exhibit import Calibration
from etips.results.exhibits import Absent, AbstentionRow, WeightHistogram
from etips.results.results import Results
from etips.results.study_result import Chart, Series


def _make(results: Results) -> dict[str, object] | None:
    if results.exhibits is None:
        return None
    calibration, abstention = results.exhibits.calibration, results.exhibits.abstention
    absent = calibration.absent if isinstance(calibration, Absent) else None
    known = None if isinstance(calibration, Absent) else calibration
    return {
        "figures": [*_weights(results.exhibits.weights), *_calibration(known)],
        "calibration": known,
        "absent": absent,
        "abstention": () if isinstance(abstention, Absent) else _steps(abstention),
    }


SECTION = Section("overlap", "Overlap and propensities", "propensity_overlap.html", _make)


def _steps(rows: Sequence[AbstentionRow]) -> list[AbstentionRow]:
    """Of rows that would look the same, the one of most support."""
    return list({_as_shown(row): row for row in rows}.values())


def _as_shown(row: AbstentionRow) -> tuple[object, ...]:
    figures = (row.risk, row.low, row.high)
    return row.verdict, percent(row.coverage, 1), *(number(figure) for figure in figures)


def _weights(weights: WeightHistogram) -> list[Figure]:
    """Histogram of the weights."""
    if all(share is None for share in weights.decisions):
        return []
    names = (
        *(f"{a:g} to {b:g}" for a, b in pairwise(weights.edges)),
        f"over {weights.edges[-1]:g}",
    )
    last = max((i for i, share in enumerate(weights.decisions) if share != 0), default=0) + 1
    series = tuple(
        Series(label, x=names[:last], y=shares[:last])
        for label, shares in (
            ("share of decisions", weights.decisions),
            ("share of weight", weights.weight),
        )
    )
    chart = Chart("", "bars", "Weights", None, "weight", "share", series)
    return [("Weights of the decisions", plot(chart, Guides(shares=True)))]


def _calibration(calibration: Calibration | None) -> list[Figure]:
    """Stated against observed propensity."""
    if calibration is None:
        return []
    bins = [b for b in calibration.bins if b.stated is not None]
    points = Series(
        "bins of stated propensity",
        x=tuple(b.stated for b in bins),
        y=tuple(b.observed for b in bins),
        error=tuple(None if b.std_error is None else 1.96 * b.std_error for b in bins),
    )
    x, y = "stated probability of an action", "how often it was taken"
    chart = Chart("", "scatter", "Calibration", None, x, y, (points,))
    figures = [("Taken as often as stated?", plot(chart, Guides(diagonal=True)))]
    actions = [own for own in calibration.actions if own.stated is not None]
    if actions:
        shares = Series(
            "one point an action",
            x=tuple(own.stated for own in actions),
            y=tuple(own.observed for own in actions),
            error=tuple(None if own.std_error is None else 1.96 * own.std_error for own in actions),
        )
        x, y = "mean stated probability", "share of the decisions"
        chart = Chart("", "scatter", "Calibration by action", None, x, y, (shares,))
        figures.append(("And action by action?", plot(chart, Guides(diagonal=True))))
    return figures
