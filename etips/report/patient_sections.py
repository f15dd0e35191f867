"""Sections on patients: what the policy does with them, whom the weights stand for, subgroups."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from etips.report.drawings import Axis, Mark, Scale, balance_plot, dose_map, interval, rows
from etips.report.figures import Guides, plot
from etips.report.finding import what_it_does
from etips.report.section import Figure
from etips.report.wording import clean, number, percent, signed
from etips.results.exhibits import (
    Absent,
    Actions,
    CalibrationPoint,
    DoseGrid,
    Share,
    WeightHistogram,
)
from etips.results.results import Results
from etips.results.study_result import Chart, Series

MAX_BARS = 30
_ROUNDING = 1e-6  # of shares that are the same
_THIN = 0.05  # of the decisions at which clinicians take the action one time in a hundred or more
_RARE = 0.01  # of the decisions, where nothing is known of other chances


def actions(results: Results) -> dict[str, object] | None:
    """Where the policy differs: dose maps for a grid of doses, otherwise bars."""
    exhibits = results.exhibits
    if exhibits is None:
        return None
    own, grid = exhibits.actions, exhibits.actions.grid
    both = [] if grid is None else [(grid.row, grid.row_levels), (grid.column, grid.column_levels)]
    doses = both or [(dose.name, dose.levels) for dose in own.doses]
    shares = zip(own.policy_share, own.recommended_share, strict=True)
    return {
        "constant": what_it_does(results, exhibits.headline),
        "doses": [(name, list(enumerate(levels))) for name, levels in doses if levels],
        "actions": own,
        "figures": _action_bars(own) if grid is None else _dose_maps(own, grid),
        "headline": exhibits.headline,
        "draws": any(a is not None and b is not None and abs(a - b) > _ROUNDING for a, b in shares),
    }


def _dose_maps(own: Actions, grid: DoseGrid) -> list[Figure]:
    logged, advised = own.logged_share, own.policy_share
    gap = [None if a is None or b is None else b - a for a, b in zip(logged, advised, strict=True)]
    if own.supported_share is not None:
        thin = [share < _THIN for share in own.supported_share]
    else:
        thin = [share is None or share < _RARE for share in logged]
    of_logged, of_advised = (
        f"Share of each dose among the {which}" for which in ("logged actions", "recommendations")
    )
    difference = dose_map(gap, grid, "Recommended minus logged share", thin=thin, signed=True)
    return [
        ("Clinicians, % of decisions", dose_map(logged, grid, of_logged, thin=thin)),
        ("Policy, % of decisions", dose_map(advised, grid, of_advised, thin=thin)),
        ("Difference, percentage points", difference),
    ]


def _action_bars(own: Actions) -> list[Figure]:
    size = [
        max(a or 0.0, b or 0.0) for a, b in zip(own.logged_share, own.policy_share, strict=True)
    ]
    order = sorted(sorted(range(len(size)), key=lambda i: -size[i])[:MAX_BARS])
    names = [clean(own.names[place], 40) for place in order]
    if len(set(names)) < len(names):  # cut short, or given twice
        names = [f"{place}: {name}" for place, name in zip(order, names, strict=True)]
    both = {"clinicians": own.logged_share, "policy": own.policy_share}
    shares = {label: [share[place] for place in order] for label, share in both.items()}
    return [_bars("Share of decisions", ("action", "share"), names, shares)]


def _bars(
    heading: str, axes: tuple[str, str], names: Sequence[str], shares: Mapping[str, Sequence[Share]]
) -> Figure:
    """Shares as lying bars, under a heading."""
    series = tuple(Series(label, tuple(names), tuple(own)) for label, own in shares.items())
    chart = Chart("", "bars", heading, None, *axes, series)
    return heading, plot(chart, Guides(shares=True))


def overlap(results: Results) -> dict[str, object] | None:
    """How weights spread, whether actions are taken as often as stated, support."""
    if results.exhibits is None:
        return None
    calibration, abstention = results.exhibits.calibration, results.exhibits.abstention
    figures, known, absent = _weights(results.exhibits.weights), None, None
    if isinstance(calibration, Absent):
        absent = calibration.absent
    else:
        known = calibration
        words = ("stated probability of an action", "how often it was taken")
        figures.append(_points("Taken as often as stated?", words, known.bins))
        if any(own.stated is not None for own in known.actions):
            words = ("mean stated probability", "share of the decisions")
            figures.append(_points("And action by action?", words, known.actions))
    rows_shown = {}  # of rows that would look the same, only the one of most support
    for row in () if isinstance(abstention, Absent) else abstention:
        risks = tuple(number(figure) for figure in (row.risk, row.low, row.high))
        rows_shown[row.verdict, percent(row.coverage, 1), *risks] = row
    return {
        "figures": figures,
        "calibration": known,
        "absent": absent,
        "abstention": list(rows_shown.values()),
    }


def _weights(weights: WeightHistogram) -> list[Figure]:
    if all(share is None for share in weights.decisions):
        return []
    names = [f"{a:g} to {b:g}" for a, b in pairwise(weights.edges)]
    names.append(f"over {weights.edges[-1]:g}")
    last = max((i for i, share in enumerate(weights.decisions) if share != 0), default=0) + 1
    both = {"share of decisions": weights.decisions, "share of weight": weights.weight}
    shares = {label: own[:last] for label, own in both.items()}
    return [_bars("Weights of the decisions", ("weight", "share"), names[:last], shares)]


def _points(title: str, axes: tuple[str, str], points: Sequence[CalibrationPoint]) -> Figure:
    """Stated against observed propensity."""
    known = [own for own in points if own.stated is not None]
    errors = tuple(None if own.std_error is None else 1.96 * own.std_error for own in known)
    stated, observed = (
        tuple(getattr(own, side) for own in known) for side in ("stated", "observed")
    )
    chart = Chart(
        "", "scatter", "Calibration", None, *axes, (Series(title, stated, observed, errors),)
    )
    return title, plot(chart, Guides(diagonal=True))


def balance(results: Results) -> dict[str, object] | None:
    """Whether weighted patients look like all patients, in prognosis and by feature."""
    own = None if results.exhibits is None else results.exhibits.balance
    prognosis = None if results.headline is None else results.headline.prognosis
    if own is None and (prognosis is None or not prognosis.sentence):
        return None
    if own is None or isinstance(own, Absent):
        absent = None if own is None else own.absent
        return {"balance": None, "absent": absent, "prognosis": prognosis}
    figure = balance_plot(own.features, own.threshold)
    return {"balance": own, "absent": None, "figure": figure, "prognosis": prognosis}


def subgroups(results: Results) -> dict[str, object] | None:
    """Risk and difference among the same people, each row with a verdict of its own."""
    every = () if results.exhibits is None else results.exhibits.subgroups
    tables = [own for own in every if len(own.rows) > 1 or own.rows[0].n_people is None]
    groups = [row for own in tables for row in own.rows]
    if not any(row.n_people is not None for row in groups):
        return None  # one group of all is the finding again, and hidden ones say nothing
    ends = [
        abs(end)
        for row in groups
        for end in (row.gain, row.gain_low, row.gain_high)
        if end is not None and row.verdict != "unusable"
    ]
    reach = min(max(ends, default=1.0), 1.0) * 1.08 or 1.0
    axis = Axis(Scale(-reach, reach), "", [Mark("guide", 0.0)])
    shown = []
    for own in tables:
        drawn = []
        for row in own.rows:
            line = interval("", (row.gain, row.gain_low, row.gain_high), "")
            label = f"difference {signed(row.gain)}, verdict {row.verdict}"
            drawn.append((row, None if row.gain is None else rows([line], axis, label)))
        shown.append((own.feature, drawn))
    return {"tables": shown}
