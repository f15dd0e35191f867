"""An explanation as one HTML file that loads nothing from elsewhere."""

import numpy as np
from markupsafe import Markup

from etips.data.decisions import Floats
from etips.data.schema import Schema
from etips.explanation.attribution import Attribution
from etips.explanation.explanation_parts import ExplanationParts
from etips.explanation.explanation_text import leaf_words, measure_words, similar_words, tree_lines
from etips.explanation.global_attribution import GlobalAttribution
from etips.explanation.stay_explanation import DecisionExplanation, StayExplanation
from etips.explanation.time_line import TimeLine
from etips.explanation.tree_report import TreeReport
from etips.report.page import environment
from etips.report.row_plots import Axis, Row, interval_rows
from etips.report.svg import Scale, drawing, tag, text
from etips.report.wording import clean, number, percent, signed
from etips.results.exhibits import NOTICE

_ROWS = 15
_CELL, _LEFT, _TOP = 22, 118, 14
_BELOW = 34  # of what stands below a column of cells
_LETTERS = 17  # of a column's name beside a row


def render_explanation(parts: ExplanationParts) -> str:
    """The page."""
    sections: list[tuple[str, str, Markup]] = []
    if parts.stay is not None:
        sections.append(("stay", "The stay, decision by decision", _stay(parts.stay)))
    if parts.overall is not None:
        sections.append(("overall", "What the policy goes by", _overall(parts)))
    if parts.rules is not None:
        sections.append(("own-rules", "What the policy goes by", _own_rules(parts.rules)))
    if parts.tree is not None:
        sections.append(("rules", "The policy as rules", _tree(parts.tree)))
    title = "Why" if parts.stay is None else f"Why: stay {clean(parts.stay.stay, 60)}"
    template = environment().get_template("explanation.html")
    return template.render(title=title, notice=NOTICE, sections=sections)


def heat_map(values: Floats, rows: list[str], columns: list[str], label: str) -> Markup:
    """Cells coloured by sign and size: for the recommendation, or against it.

    Args:
        values: Shape (len(columns), len(rows)).
        rows: Names beside the rows.
        columns: Names below, turned; also in each cell's tooltip.
        label: What it shows, for a screen reader.
    """
    limit = max(float(np.abs(values).max(initial=0.0)), 1e-12)
    cells: list[Markup] = []
    for at, name in enumerate(rows):
        y = _TOP + at * _CELL
        cells.append(text(_LEFT - 6, y + 15, clean(name, _LETTERS), class_="end"))
        for along, step in enumerate(columns):
            value = float(values[along, at])
            tip = tag("title", f"{clean(name)}, {clean(step)}: {signed(value)}")
            cells.append(
                tag(
                    "rect", tip, x=_LEFT + along * _CELL, y=y, width=_CELL - 2, height=_CELL - 2,
                    class_=f"mark {'c0' if value >= 0 else 'c1'}",
                    fill_opacity=f"{abs(value) / limit:.2f}",
                )
            )  # fmt: skip
    foot = _TOP + len(rows) * _CELL + 12
    for along, step in enumerate(columns):
        x = _LEFT + along * _CELL + 12
        turned = f"rotate(55 {x} {foot})"
        cells.append(text(x, foot, clean(step, _BELOW), class_="small", transform=turned))
    width = _LEFT + max(len(columns), 1) * _CELL + 130
    longest = max((len(clean(step, _BELOW)) for step in columns), default=0)
    return drawing(foot + 10 + 5.2 * longest, label, *cells, width=width)


def _stay(stay: StayExplanation) -> Markup:
    line = TimeLine.of(stay, most=_ROWS)
    map_ = heat_map(line.values, list(line.columns), list(line.labels), "What speaks for it, when")
    template = environment().get_template("explanation_stay.html")
    decisions = [_decision(own, stay.schema) for own in stay.decisions]
    drawn = bool(line.columns)
    return Markup(template.render(map=map_, drawn=drawn, unit=line.unit, decisions=decisions))  # noqa: S704


def _decision(own: DecisionExplanation, schema: Schema) -> dict[str, object]:
    """What the template shows of a decision."""
    chance = own.probabilities
    return {
        "label": own.label,
        "recommended": "wait" if own.abstained else schema.action_name(own.recommended),
        "chance": None if own.abstained else percent(float(chance[own.recommended])),
        "support": None if own.support is None else percent(float(own.support[own.recommended])),
        "logged": None if own.logged is None else schema.action_name(own.logged),
        "differs": own.logged is not None and own.logged != own.recommended,
        "abstained": own.abstained,
        "wavers": own.wavers,
        "against": None if own.attribution is None else schema.action_name(own.attribution.against),
        "map": None if own.attribution is None else _by_step(own.attribution),
        "groups": {} if own.attribution is None else own.attribution.by_group(),
        "off": None
        if own.attribution is None or own.attribution.complete
        else percent(own.attribution.completeness_error),
        "similar": None if own.similar is None else similar_words(own.similar, schema),
        "measure": [measure_words(one) for one in own.measure],
        "rule": own.rule,
    }


def _by_step(own: Attribution) -> Markup:
    """One decision by column and step; static columns stand at "always"."""
    names = list(own.by_column())[:_ROWS]
    values = np.zeros((len(own.steps) + 1, len(names)))
    for at, name in enumerate(names):
        if name in own.columns:
            values[:-1, at] = own.values[:, own.columns.index(name)]
        else:
            values[-1, at] = own.static_values[own.static_columns.index(name)]
    steps = [str(label) for label in own.steps] + ["always"]
    if not any(name in own.static_columns for name in names):
        values, steps = values[:-1], steps[:-1]
    return heat_map(values, names, steps, "What speaks for it, by step")


def _overall(parts: ExplanationParts) -> Markup:
    own = parts.overall
    assert own is not None
    template = environment().get_template("explanation_overall.html")
    return Markup(  # noqa: S704
        template.render(overall=own, seeds=parts.seeds, forest=_strengths(own))
    )


def _strengths(own: GlobalAttribution) -> Markup:
    columns = own.columns[:_ROWS]
    rows = [
        Row(clean(c.name, 24), c.mean, c.low, c.high, f"{number(c.mean)} ({percent(c.share)})")
        for c in columns
    ]
    scale = Scale.around([0.0, *(c.high for c in columns)], 0, 100)
    return interval_rows(rows, Axis(scale, f"mean size, {own.unit}"), label="Strength by column")


def _own_rules(rules: tuple[str, ...]) -> Markup:
    template = environment().get_template("explanation_given_rules.html")
    return Markup(template.render(rules=rules))  # noqa: S704


def _tree(own: TreeReport) -> Markup:
    template = environment().get_template("explanation_rules.html")
    n_rules = 2 + 2 * len(own.leaves)
    return Markup(  # noqa: S704
        template.render(
            sentence=own.tree.sentence,
            leaves=[(leaf.rule, leaf_words(leaf)) for leaf in own.leaves],
            lines=tree_lines(own)[n_rules:],
        )
    )
