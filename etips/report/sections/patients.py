"""Sections on patients: what the policy does with them, whom the weights stand for, subgroups."""

from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from etips.report.drawings import (
    LEGEND,
    Axis,
    Mark,
    Scale,
    balance_plot,
    dose_map,
    interval,
    rows,
)
from etips.report.figures import Guides, plot
from etips.report.finding import what_it_does
from etips.report.section import Figure, Section
from etips.report.wording import clean, number, percent, signed
from etips.results.exhibits import (
    Absent,
    AbstentionRow,
    Actions,
    Calibration,
    DoseGrid,
    Subgroup,
    WeightHistogram,
)
from etips.results.results import Results
from etips.results.study_result import Chart, Series

MAX_BARS = 30
_ROUNDING = 1e-6  # of shares that are the same
_THIN = 0.05  # of the decisions at which clinicians take the action one time in a hundred or more
_RARE = 0.01  # of the decisions, where nothing is known of other chances


def _actions(results: Results) -> dict[str, object] | None:
    """Where the policy differs: dose maps for a grid of doses, otherwise bars."""
    exhibits = results.exhibits
    if exhibits is None:
        return None
    own, grid = exhibits.actions, exhibits.actions.grid
    shares = zip(own.policy_share, own.recommended_share, strict=True)
    return {
        "constant": what_it_does(results, exhibits.headline),
        "legend": [] if grid is None else LEGEND,
        "doses": _dose_classes(own),
        "actions": own,
        "figures": [_bars(own)] if grid is None else _dose_maps(own, grid),
        "headline": exhibits.headline,
        "draws": any(a is not None and b is not None and abs(a - b) > _ROUNDING for a, b in shares),
    }


def _dose_maps(actions: Actions, grid: DoseGrid) -> list[Figure]:
    logged, advised = actions.logged_share, actions.policy_share
    gap = [None if a is None or b is None else b - a for a, b in zip(logged, advised, strict=True)]
    if actions.supported_share is not None:
        thin = [share < _THIN for share in actions.supported_share]
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


def _dose_classes(actions: Actions) -> list[tuple[str, list[tuple[int, str]]]]:
    """What the classes of each dose are, where that is known."""
    grid = actions.grid
    both = [] if grid is None else [(grid.row, grid.row_levels), (grid.column, grid.column_levels)]
    doses = both or [(dose.name, dose.levels) for dose in actions.doses]
    return [(name, list(enumerate(levels))) for name, levels in doses if levels]


def _bars(actions: Actions) -> Figure:
    both = (("clinicians", actions.logged_share), ("policy", actions.policy_share))
    size = [max(a or 0.0, b or 0.0) for a, b in zip(both[0][1], both[1][1], strict=True)]
    order = sorted(sorted(range(len(size)), key=lambda i: -size[i])[:MAX_BARS])
    names = tuple(clean(actions.names[place], 40) for place in order)
    if len(set(names)) < len(names):  # cut short, or given twice
        names = tuple(f"{place}: {name}" for place, name in zip(order, names, strict=True))
    series = tuple(
        Series(label, names, tuple(shares[place] for place in order)) for label, shares in both
    )
    chart = Chart("", "bars", "Actions", None, "action", "share of decisions", series)
    return "Share of decisions", plot(chart, Guides(shares=True))


ACTIONS = Section(
    "actions", "Where the policy differs from the clinicians", "recommended_actions.html", _actions
)


def _overlap(results: Results) -> dict[str, object] | None:
    """How weights spread, whether actions are taken as often as stated, support."""
    if results.exhibits is None:
        return None
    calibration, abstention = results.exhibits.calibration, results.exhibits.abstention
    absent = calibration.absent if isinstance(calibration, Absent) else None
    known = None if isinstance(calibration, Absent) else calibration
    rows = () if isinstance(abstention, Absent) else abstention
    return {
        "figures": [*_weights(results.exhibits.weights), *_calibration(known)],
        "calibration": known,
        "absent": absent,
        "abstention": list({_as_shown(row): row for row in rows}.values()),
    }


def _as_shown(row: AbstentionRow) -> tuple[object, ...]:
    """Of rows that would look the same, only the one of most support is shown."""
    figures = (row.risk, row.low, row.high)
    return row.verdict, percent(row.coverage, 1), *(number(figure) for figure in figures)


def _weights(weights: WeightHistogram) -> list[Figure]:
    if all(share is None for share in weights.decisions):
        return []
    ranges = [f"{a:g} to {b:g}" for a, b in pairwise(weights.edges)]
    names = (*ranges, f"over {weights.edges[-1]:g}")
    last = max((i for i, share in enumerate(weights.decisions) if share != 0), default=0) + 1
    series = tuple(
        Series(label, names[:last], shares[:last])
        for label, shares in (
            ("share of decisions", weights.decisions),
            ("share of weight", weights.weight),
        )
    )
    chart = Chart("", "bars", "Weights", None, "weight", "share", series)
    return [("Weights of the decisions", plot(chart, Guides(shares=True)))]


def _calibration(calibration: Calibration | None) -> list[Figure]:
    """Stated against observed propensity, by bin and by action."""
    if calibration is None:
        return []
    bins = [(own.stated, own.observed, own.std_error) for own in calibration.bins]
    actions = [(own.stated, own.observed, own.std_error) for own in calibration.actions]
    drawn = [
        _points(
            "Taken as often as stated?",
            ("stated probability of an action", "how often it was taken"),
            bins,
        )
    ]
    if any(stated is not None for stated, _, _ in actions):
        words = ("mean stated probability", "share of the decisions")
        drawn.append(_points("And action by action?", words, actions))
    return drawn


def _points(
    title: str,
    axes: tuple[str, str],
    points: Sequence[tuple[float | None, float | None, float | None]],
) -> Figure:
    known = [own for own in points if own[0] is not None]
    stated, observed = (tuple(own[k] for own in known) for k in (0, 1))
    errors = tuple(None if error is None else 1.96 * error for _, _, error in known)
    series = (Series(title, stated, observed, errors),)
    chart = Chart("", "scatter", "Calibration", None, *axes, series)
    return title, plot(chart, Guides(diagonal=True))


OVERLAP = Section("overlap", "Overlap and propensities", "propensity_overlap.html", _overlap)


def _balance(results: Results) -> dict[str, object] | None:
    """Whether weighted patients look like all patients, in prognosis and by feature."""
    balance = None if results.exhibits is None else results.exhibits.balance
    prognosis = None if results.headline is None else results.headline.prognosis
    if balance is None and (prognosis is None or not prognosis.sentence):
        return None
    if balance is None or isinstance(balance, Absent):
        absent = None if balance is None else balance.absent
        return {"balance": None, "absent": absent, "prognosis": prognosis}
    return {
        "balance": balance,
        "absent": None,
        "figure": balance_plot(balance.features, balance.threshold),
        "prognosis": prognosis,
    }


BALANCE = Section("balance", "Balance", "balance.html", _balance)


def _subgroups(results: Results) -> dict[str, object] | None:
    """Risk and difference among the same people, each row with a verdict of its own."""
    every = () if results.exhibits is None else results.exhibits.subgroups
    tables = [table for table in every if len(table.rows) > 1 or table.rows[0].n_people is None]
    if not any(row.n_people is not None for table in tables for row in table.rows):
        return None  # one group of all is the finding again, and hidden ones say nothing
    ends = [
        abs(end)
        for table in tables
        for row in table.rows
        for end in (row.gain, row.gain_low, row.gain_high)
        if end is not None and row.verdict != "unusable"
    ]
    reach = min(max(ends, default=1.0), 1.0) * 1.08 or 1.0
    axis = Axis(Scale(-reach, reach), "", [Mark("guide", 0.0)])
    return {
        "tables": [
            (table.feature, [(row, _gain(row, axis)) for row in table.rows]) for table in tables
        ]
    }


def _gain(row: Subgroup, axis: Axis) -> Markup | None:
    """The gain against zero, small enough for a cell of a table."""
    if row.gain is None:
        return None
    label = f"difference {signed(row.gain)}, verdict {row.verdict}"
    return rows([interval("", (row.gain, row.gain_low, row.gain_high), "")], axis, label)


SUBGROUPS = Section("subgroups", "Subgroups", "subgroup_tables.html", _subgroups)
