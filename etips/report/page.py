"""A results document as one HTML file that loads nothing from elsewhere.

The page shows what the document holds and computes nothing new about the data, so that whoever has
`results.json` has all that the page is made of.
"""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from etips.report import wording
from etips.report.finding import finding, hidden_confounding
from etips.report.glossary import MEASURES, formula_words, policy_words
from etips.report.maps import HATCH
from etips.report.plots import intervals, plot, risk_scale
from etips.report.sections import (
    action_figures,
    balance_figure,
    calibration_figures,
    flow_rows,
    path_figures,
    policy_rows,
    sensitivity_figure,
    subgroup_tables,
    weight_figure,
)
from etips.report.tripod import ITEMS
from etips.results.documents import check_results
from etips.results.exhibits import NOTICE

SECTIONS = (
    ("policies", "The policies"),
    ("evidence", "How the evidence holds"),
    ("path", "The translation path"),
    ("actions", "Where the policy differs from the clinicians"),
    ("overlap", "Overlap and propensities"),
    ("balance", "Balance"),
    ("subgroups", "Subgroups"),
    ("sensitivity", "Hidden confounding"),
    ("flow", "Cohort and missing values"),
    ("settings", "Settings and versions"),
    ("tripod", "Reporting checklist"),
)
"""Anchors and headings after the finding, in order."""


_HISTORY = {
    True: {"history": "a decision sees the steps before it (lag 1)"},
    False: {"history": "a decision sees its own step too (lag 0)"},
}


def render(document: Mapping[str, Any]) -> str:
    """The page of a results document.

    Args:
        document: The contract's `results.json`; may also hold `title`, `lead`, `tables` (`title`,
            `note`, `columns`, `rows`) and `charts` (see `etips.report.figures.draw`).
    """
    found = check_results(document)
    return _environment().get_template("page.html").render(**_context(found))


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("etips.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "name": wording.name,
        "number": wording.number,
        "signed": wording.signed,
        "count": wording.count,
        "percent": wording.percent,
        "badge": wording.badge,
        "clean": wording.clean,
        "cell": _cell,
    }
    return made


def _context(document: Mapping[str, Any]) -> dict[str, Any]:
    data, methods = document["data"], document["methods"]
    exhibits = document.get("exhibits") or {}
    main = wording.headline_of(document)
    scale = risk_scale(methods, data.get("mean_loss"))
    title = document.get("title")
    return {
        "title": title or (f"Report on {wording.clean(main['name'])}" if main else "Report"),
        "lead": document.get("lead"),
        "notice": NOTICE,
        "sections": SECTIONS,
        "data": data,
        "main": main,
        "methods": methods,
        "finding": finding(main, data, len(methods)) if main else None,
        "confounding": hidden_confounding(main) if main else None,
        "policies": policy_rows(methods, data),
        "with_truth": any(m.get("truth") is not None for m in methods),
        "marks": wording.MARKS,
        "words": [
            *policy_words(
                methods, exhibits.get("settings") or {}, in_tables=bool(document.get("tables"))
            ),
            *MEASURES,
        ],
        "formulas": [(wording.LABELS[n], text) for n, text in formula_words(methods)],
        "outcome": (data.get("provenance") or {}).get("loss"),
        "tables": document.get("tables") or [],
        "charts": [(chart, plot(chart)) for chart in document.get("charts") or []],
        "intervals": [
            (m, intervals(m, scale, data.get("mean_loss"))) for m in methods if m["estimates"]
        ],
        "x": exhibits,
        "paths": path_figures(exhibits.get("paths") or {}, data.get("mean_loss")),
        "actions": action_figures(exhibits.get("actions")),
        "hatch": HATCH,
        "calibration": calibration_figures(exhibits.get("calibration")),
        "weights": weight_figure(exhibits.get("weights")),
        "balance": balance_figure(exhibits.get("balance")),
        "subgroups": subgroup_tables(exhibits.get("subgroups") or []),
        "sensitivity": sensitivity_figure(main, data.get("mean_loss")) if main else None,
        "flow": flow_rows(exhibits.get("flow")),
        "settings": _settings(document) | _HISTORY[data["lag"] == 1],
        "tripod": ITEMS,
        "seconds": document["seconds"],
    }


def _settings(document: Mapping[str, Any]) -> dict[str, Any]:
    """The settings on record, but for what stands at the top of the page already."""
    found = (document.get("exhibits") or {}).get("settings") or {}
    above = [name for name in ("title", "lead") if document.get(name)]
    return _flat({name: value for name, value in found.items() if name not in above})


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings within settings, one under the other; the innermost in one line."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and any(isinstance(v, Mapping) for v in value.values()):
            found |= {f"{key}: {inner}": v for inner, v in _flat(value).items()}
        elif isinstance(value, Mapping) and value:
            found[key] = "; ".join(f"{inner} {_setting(v)}" for inner, v in value.items())
        else:
            found[key] = _setting(value)
    return found


def _setting(value: object) -> str:
    """A setting in words."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | Mapping):
        return ", ".join(map(_setting, value)) or "none"
    return "none" if value is None else str(value)


def _cell(value: object) -> str:
    """A cell of a study's own table."""
    if isinstance(value, float):
        return wording.number(value, 4)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = wording.NONE if value is None else wording.clean(value, 200)
    if text[:1] == "-" and (len(text) == 1 or text[1].isdigit()):
        return (wording.NONE if len(text) == 1 else wording.MINUS) + text[1:]
    return text
