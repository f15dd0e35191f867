"""What each section of the page shows: rows of its tables and its drawings."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from markupsafe import Markup

from etips.disclosure import FEW
from etips.learn.learners.selection import FACTOR_RANGE, LEAST_SIZE
from etips.report.maps import balance_plot, dose_map, small_interval
from etips.report.plots import band, plot
from etips.report.svg import Scale
from etips.report.wording import NONE, clean, number, percent, signed, span

Figure = tuple[str, Markup]
"""A heading and its drawing."""

MOST_BARS = 30
THIN = 0.05  # of the decisions at which clinicians take the action one time in a hundred or more


def policy_rows(methods: Sequence[Mapping[str, Any]], data: Mapping[str, Any]) -> list[Any]:
    """The table of policies: each row has its verdict beside its first number."""
    rows = []
    for method in methods:
        head = method["estimates"][0] if method["estimates"] else {}
        gain, found = method.get("gain") or {}, method.get("diagnostics") or {}
        size, n = found.get("effective_sample_size"), data.get("n_decisions")
        share = f" ({percent(size / n)})" if size is not None and n else ""
        few = FEW if found and size is None else number(size, 0)
        rows.append(
            {
                "name": method["name"],
                "verdict": method["verdict"],
                "risk": number(head.get("risk")),
                "limits": span(head.get("low"), head.get("high")) if head else "",
                "gain": signed(gain.get("difference")),
                "gain_limits": f"{signed(gain.get('low'))} to {signed(gain.get('high'))}"
                if gain.get("difference") is not None
                else "",
                "better": _better(gain.get("better"), method["verdict"]),
                "factor": number(found.get("matching_factor"), 2),
                "size": few + share,
                "truth": number(method.get("truth")),
            }
        )
    return rows


def _better(found: bool | None, verdict: str | None) -> str:
    if found is None:
        return NONE
    if not found:
        return "not shown"
    return "yes" if verdict == "reliable" else f"yes, but {verdict}"


def path_figures(
    paths: Mapping[str, Sequence[Mapping[str, Any]]], mean_loss: float | None
) -> list[dict[str, Any]]:
    """For each policy with a path: three drawings, and the candidates as rows."""
    return [_path(name, path, mean_loss) for name, path in paths.items()]


def _path(name: str, path: Sequence[Mapping[str, Any]], mean_loss: float | None) -> dict[str, Any]:
    trained = [c for c in path if c["action"] is None and c["translation"] is not None]
    fixed = [c for c in path if c["action"] is not None and c["risk"] is not None]
    chosen = next((c for c in path if c["chosen"]), None)
    best = min(fixed, key=lambda c: c["risk"], default=None)
    kept = chosen if chosen is not None and chosen["action"] is not None else best
    rows = [*trained, *([kept] if kept is not None else [])]
    return {
        "name": name,
        "figures": _path_plots(trained, chosen, mean_loss) if len(trained) > 1 else [],
        "rows": [{**c, "label": _candidate(c), "sound": _sound(c)} for c in rows],
        "chosen": None if chosen is None else _candidate(chosen),
        "constant": chosen is not None and chosen["action"] is not None,
    }


def _path_plots(
    trained: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any] | None, mean_loss: float | None
) -> list[Figure]:
    place = next((i for i, c in enumerate(trained) if c is chosen), None)
    hollow = [i for i, c in enumerate(trained) if not _sound(c)]
    clinicians = None if mean_loss is None else (mean_loss, "clinicians")
    wanted = (
        ("risk", "Held-out risk (SNIPS)", clinicians),
        ("matching_factor", "Matching factor", (1.0, "1: as many as expected")),
        ("effective_size", "Effective sample size", None),
    )
    found = []
    for key, title, across in wanted:
        errors = [c["std_error"] and 1.96 * c["std_error"] for c in trained]
        series = {
            "name": title,
            "x": [c["translation"] for c in trained],
            "y": [c[key] for c in trained],
            "error": errors if key == "risk" else None,
        }
        chart = {"kind": "lines", "title": title, "x": "translation", "y": title}
        more = {"across": across, "hollow": hollow, "chosen": place}
        found.append((title, plot({**chart, **more, "series": [series]})))
    return found


def _candidate(found: Mapping[str, Any]) -> str:
    if found["action"] is not None:
        return f"always action {found['action']}"
    return f"translation {found['translation']:g}"


def _sound(found: Mapping[str, Any]) -> bool:
    factor, size = found["matching_factor"], found["effective_size"]
    low, high = FACTOR_RANGE
    return factor is not None and low <= factor <= high and (size or 0) >= LEAST_SIZE


def action_figures(actions: Mapping[str, Any] | None) -> list[Figure]:
    """Dose maps for a grid of doses, else bars."""
    if actions is None:
        return []
    logged, advised = actions["logged_share"], actions["recommended_share"]
    if actions["grid"] is None:
        return [_action_bars(actions)]
    gap = [None if a is None or b is None else b - a for a, b in zip(logged, advised, strict=True)]
    thin, grid = _thin(actions), actions["grid"]
    return [
        (
            "Clinicians, % of decisions",
            dose_map(logged, grid, "Share of each dose among the logged actions", thin=thin),
        ),
        (
            "Policy, % of decisions",
            dose_map(advised, grid, "Share of each dose among the recommendations", thin=thin),
        ),
        (
            "Difference, percentage points",
            dose_map(gap, grid, "Recommended minus logged share", thin=thin, signed=True),
        ),
    ]


def _thin(actions: Mapping[str, Any]) -> list[bool]:
    """Actions that the log hardly holds: rarely likely, or, not knowing that, rarely taken."""
    support = actions["supported_share"]
    if support is not None:
        return [share < THIN for share in support]
    return [share is None or share < 0.01 for share in actions["logged_share"]]


def _action_bars(actions: Mapping[str, Any]) -> Figure:
    size = [
        max(a or 0.0, b or 0.0)
        for a, b in zip(actions["logged_share"], actions["recommended_share"], strict=True)
    ]
    order = sorted(sorted(range(len(size)), key=lambda i: -size[i])[:MOST_BARS])
    names = [f"{place}: {clean(actions['names'][place], 40)}" for place in order]
    if all(name == f"action {place}" for place, name in enumerate(actions["names"])):
        names = [f"action {place}" for place in order]
    series = [
        {"name": label, "x": names, "y": [actions[key][place] for place in order], "error": None}
        for label, key in (("clinicians", "logged_share"), ("policy", "recommended_share"))
    ]
    chart = {"kind": "bars", "title": "Actions", "x": "action", "y": "share of decisions"}
    return "Share of decisions", plot({**chart, "shares": True, "series": series})


def calibration_figures(found: Mapping[str, Any] | None) -> list[Figure]:
    """Stated against observed propensity."""
    if found is None or "absent" in found:
        return []
    bins = [b for b in found["bins"] if b["stated"] is not None]
    series = {
        "name": "bins of stated propensity",
        "x": [b["stated"] for b in bins],
        "y": [b["observed"] for b in bins],
        "error": [None if b["std_error"] is None else 1.96 * b["std_error"] for b in bins],
    }
    chart: dict[str, Any] = {"kind": "scatter", "title": "Calibration", "diagonal": True}
    chart |= {"x": "stated probability of an action", "y": "how often it was taken"}
    chart["series"] = [series]
    return [("Taken as often as stated?", plot(chart))]


def weight_figure(found: Mapping[str, Any] | None) -> list[Figure]:
    """Histogram of the weights."""
    if found is None or all(share is None for share in found["decisions"]):
        return []
    edges = found["edges"]
    names = [f"{a:g} to {b:g}" for a, b in pairwise(edges)]
    names.append(f"over {edges[-1]:g}")
    last = max((i for i, share in enumerate(found["decisions"]) if share != 0), default=0) + 1
    series = [
        {"name": label, "x": names[:last], "y": found[key][:last], "error": None}
        for label, key in (("share of decisions", "decisions"), ("share of weight", "weight"))
    ]
    chart = {"kind": "bars", "title": "Weights", "x": "weight", "y": "share", "shares": True}
    return [("Weights of the decisions", plot({**chart, "series": series}))]


def balance_figure(found: Mapping[str, Any] | None) -> Markup | None:
    """Features before and after weighting."""
    if found is None or "absent" in found:
        return None
    return balance_plot(found["features"], found["threshold"])


def subgroup_tables(tables: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each table with a small interval of the gain in every row."""
    ends = [
        abs(row[key])
        for table in tables
        for row in table["rows"]
        for key in ("gain", "gain_low", "gain_high")
        if row[key] is not None and row["verdict"] != "unusable"
    ]
    reach = min(max(ends, default=1.0), 1.0) * 1.08 or 1.0
    scale = Scale(-reach, reach, 4, 126)
    return [
        {
            "feature": table["feature"],
            "rows": [{**row, "figure": _gain_figure(row, scale)} for row in table["rows"]],
        }
        for table in tables
    ]


def _gain_figure(row: Mapping[str, Any], scale: Scale) -> Markup | None:
    if row["gain"] is None:
        return None
    label = f"difference {signed(row['gain'])}, verdict {row['verdict']}"
    return small_interval(row["gain"], row["gain_low"], row["gain_high"], scale, label)


def sensitivity_figure(method: Mapping[str, Any], mean_loss: float | None) -> Markup | None:
    """Bounds of the risk against the strength of hidden confounding."""
    found = method.get("sensitivity")
    if not found or not found["bounds"]:
        return None
    label = (
        f"{clean(method['name'])}: bounds of the risk under hidden confounding, "
        f"verdict {method['verdict']}"
    )
    return band(found["bounds"], mean_loss, label)


def flow_rows(flow: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Steps of the cohort with the length of their bars."""
    if flow is None:
        return []
    most = max((stage["count"] or 0 for stage in flow["stages"]), default=0) or 1
    return [{**stage, "width": 100 * (stage["count"] or 0) / most} for stage in flow["stages"]]
