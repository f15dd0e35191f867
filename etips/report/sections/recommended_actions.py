"""Where the policy differs from the clinicians: dose maps for a grid of doses, otherwise bars."""

from etips.report.maps import LEGEND, dose_map
from etips.report.plots import Guides, plot
from etips.report.policy_words import what_it_does
from etips.report.section import Figure, Section
from etips.report.wording import clean
from etips.results.exhibits import Actions, DoseGrid
from etips.results.results import Results
from etips.results.study_result import Chart, Series

MOST_BARS = 30
_ROUNDING = 1e-6  # of shares that are the same
THIN = 0.05  # of the decisions at which clinicians take the action one time in a hundred or more


def _make(results: Results) -> dict[str, object] | None:
    exhibits = results.exhibits
    if exhibits is None:
        return None
    actions, grid = exhibits.actions, exhibits.actions.grid
    return {
        "constant": what_it_does(results, exhibits.headline),
        "legend": [] if grid is None else LEGEND,
        "doses": _classes(actions),
        "actions": actions,
        "figures": [_bars(actions)] if grid is None else _dose_maps(actions, grid),
        "headline": exhibits.headline,
        "draws": _draws(actions),
    }


SECTION = Section(
    "actions",
    "Where the policy differs from the clinicians",
    "recommended_actions.html",
    _make,
)


def _dose_maps(actions: Actions, grid: DoseGrid) -> list[Figure]:
    logged, advised = actions.logged_share, actions.policy_share
    gap = [None if a is None or b is None else b - a for a, b in zip(logged, advised, strict=True)]
    thin = _thin(actions)
    of_logged, of_advised = (
        f"Share of each dose among the {which}" for which in ("logged actions", "recommendations")
    )
    difference = dose_map(gap, grid, "Recommended minus logged share", thin=thin, signed=True)
    return [
        ("Clinicians, % of decisions", dose_map(logged, grid, of_logged, thin=thin)),
        ("Policy, % of decisions", dose_map(advised, grid, of_advised, thin=thin)),
        ("Difference, percentage points", difference),
    ]


def _draws(actions: Actions) -> bool:
    """Whether the policy takes other actions than its first choice as well."""
    pairs = zip(actions.policy_share, actions.recommended_share, strict=True)
    return any(a is not None and b is not None and abs(a - b) > _ROUNDING for a, b in pairs)


def _classes(actions: Actions) -> list[tuple[str, list[tuple[int, str]]]]:
    """What the classes of each dose are, where that is known."""
    grid = actions.grid
    both = [] if grid is None else [(grid.row, grid.row_levels), (grid.column, grid.column_levels)]
    doses = both or [(dose.name, dose.levels) for dose in actions.doses]
    return [(name, list(enumerate(levels))) for name, levels in doses if levels]


def _thin(actions: Actions) -> list[bool]:
    """Actions that the log hardly holds: rarely likely, or, not knowing that, rarely taken."""
    if actions.supported_share is not None:
        return [share < THIN for share in actions.supported_share]
    return [share is None or share < 0.01 for share in actions.logged_share]


def _bars(actions: Actions) -> Figure:
    size = [
        max(a or 0.0, b or 0.0)
        for a, b in zip(actions.logged_share, actions.policy_share, strict=True)
    ]
    order = sorted(sorted(range(len(size)), key=lambda i: -size[i])[:MOST_BARS])
    names = tuple(clean(actions.names[place], 40) for place in order)
    if len(set(names)) < len(names):  # cut short, or given twice
        names = tuple(f"{place}: {name}" for place, name in zip(order, names, strict=True))
    series = tuple(
        Series(label, x=names, y=tuple(shares[place] for place in order))
        for label, shares in (
            ("clinicians", actions.logged_share),
            ("policy", actions.policy_share),
        )
    )
    chart = Chart("", "bars", "Actions", None, "action", "share of decisions", series)
    return "Share of decisions", plot(chart, Guides(shares=True))
