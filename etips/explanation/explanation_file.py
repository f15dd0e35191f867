"""What was found of why a policy recommends what it does, and its forms: lines, a page, a drawing.

The page is one HTML file that loads nothing from elsewhere.
"""

import io
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from etips.data.decisions import Floats
from etips.data.schema import Schema
from etips.errors import SettingError
from etips.explanation.attribution import Attribution
from etips.explanation.explanation_text import (
    leaf_words,
    measure_words,
    overall_lines,
    similar_words,
    stay_lines,
    tree_lines,
)
from etips.explanation.global_attribution import GlobalAttribution, SeedAgreement
from etips.explanation.stay_explanation import DecisionExplanation, StayExplanation
from etips.explanation.tree_report import TreeReport
from etips.files.json_documents import canonical
from etips.files.writing import write_file
from etips.report.drawings import Axis, Cell, Scale, cell_map, interval, rows
from etips.report.figures import COLOURS, style
from etips.report.section import fill, require_ending
from etips.report.wording import clean, number, percent, signed
from etips.results.records import NOTICE

ENDINGS = (".html", ".json", ".png")

_ROWS = 15  # columns that are drawn
_BELOW, _LETTERS = 34, 17  # letters of what stands below a column of cells, and beside a row
_STYLE: Any = {"font.size": 9, "figure.dpi": 100}


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What `explain` found; print it, `to_json()`, or `report("why.html")`.

    Args:
        stay: Decision by decision, where one stay was asked about.
        overall: On the whole, where none was.
        seeds: How that changes over seeds, where several policies were given.
        tree: As rules that were learned beside it.
        rules: What it says itself, where it is nothing but rules.
    """

    stay: StayExplanation | None = None
    overall: GlobalAttribution | None = None
    seeds: SeedAgreement | None = None
    tree: TreeReport | None = None
    rules: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, object]:
        """JSON-ready; what was not asked for is null."""
        return {
            "stay": None if self.stay is None else self.stay.to_json(),
            "overall": None if self.overall is None else asdict(self.overall),
            "seeds": None if self.seeds is None else asdict(self.seeds),
            "tree": None if self.tree is None else self.tree.to_json(),
            "rules": None if self.rules is None else list(self.rules),
        }

    def report(self, place: str | Path) -> Path:
        """Write a page (.html), the figures (.json) or a drawing (.png); return where it is."""
        place = Path(place)
        require_ending(place, *ENDINGS)
        if place.suffix == ".html":
            content = render_explanation(self).encode()
        elif place.suffix == ".json":
            content = canonical({name: finite(own) for name, own in self.to_json().items()})
        else:
            content = draw_explanation(self)
        write_file(place, content)
        return place

    def __repr__(self) -> str:
        lines = [] if self.stay is None else stay_lines(self.stay)
        lines += [] if self.overall is None else overall_lines(self.overall)
        if self.seeds is not None:
            lines.append(
                f"over {self.seeds.n_policies} seeds: {self.seeds.first_in_common:.0%} of the first"
                f" ten columns in common, rank correlation {self.seeds.rank_correlation:.2f}"
            )
        if self.rules is not None:
            lines.append("the policy is rules, which explain themselves")
            lines += [f"  {rule}" for rule in self.rules]
        lines += [] if self.tree is None else tree_lines(self.tree)
        return "\n".join(lines)


def finite(value: object) -> object:
    """The same with null for numbers that JSON lacks."""
    if isinstance(value, dict):
        return {str(name): finite(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [finite(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def render_explanation(own: Explanation) -> str:
    """The page."""
    goes_by = "What the policy goes by"
    sections: list[tuple[str, str, Markup]] = []
    if own.stay is not None:
        sections.append(("stay", "The stay, decision by decision", _stay(own.stay)))
    if own.overall is not None:
        shown = {"overall": own.overall, "seeds": own.seeds, "forest": _strengths(own.overall)}
        sections.append(("overall", goes_by, fill("explanation_overall.html", shown)))
    if own.rules is not None:
        body = fill("explanation_given_rules.html", {"rules": own.rules})
        sections.append(("own-rules", goes_by, body))
    if own.tree is not None:
        context = {
            "sentence": own.tree.tree.sentence,
            "leaves": [(leaf.rule, leaf_words(leaf)) for leaf in own.tree.leaves],
            "lines": tree_lines(own.tree)[2 + 2 * len(own.tree.leaves) :],
        }
        body = fill("explanation_rules.html", context)
        sections.append(("rules", "The policy as rules", body))
    title = "Why" if own.stay is None else f"Why: stay {clean(own.stay.stay, 60)}"
    return str(fill("explanation.html", {"title": title, "notice": NOTICE, "sections": sections}))


def heat_map(values: Floats, names: list[str], columns: list[str], label: str) -> Markup:
    """Cells coloured by sign and size: for the recommendation, or against it.

    Args:
        values: Shape (len(columns), len(names)).
        names: Beside the rows.
        columns: Names below, turned; also in each cell's tooltip.
        label: What it shows, for a screen reader.
    """
    limit = max(float(np.abs(values).max(initial=0.0)), 1e-12)
    drawn = [
        (
            clean(name, _LETTERS),
            [
                Cell(
                    abs(value) / limit,
                    "c0" if value >= 0 else "c1",
                    tip=f"{clean(name)}, {clean(step)}: {signed(value)}",
                )
                for step, value in zip(columns, of_name, strict=True)
            ],
        )
        for name, of_name in zip(names, values.T.tolist(), strict=True)
    ]
    return cell_map(drawn, [clean(step, _BELOW) for step in columns], label)


def _stay(stay: StayExplanation) -> Markup:
    columns, labels, values = time_line(stay)
    context = {
        "map": heat_map(values, columns, labels, "What speaks for it, when"),
        "drawn": bool(columns),
        "unit": stay.unit,
        "decisions": [_decision(own, stay.schema) for own in stay.decisions],
    }
    return fill("explanation_stay.html", context)


def time_line(stay: StayExplanation, most: int = _ROWS) -> tuple[list[str], list[str], Floats]:
    """The strongest columns of a stay, its decisions in words, and what each column adds at each.

    Values have shape (decisions, columns).
    """
    sums = [
        {} if own.attribution is None else own.attribution.by_column() for own in stay.decisions
    ]
    sizes: dict[str, float] = {}
    for one in sums:
        for name, value in one.items():
            sizes[name] = sizes.get(name, 0.0) + abs(value)
    columns = sorted(sizes, key=lambda name: -sizes[name])[:most]
    values = np.array([[one.get(name, 0.0) for name in columns] for one in sums])
    labels = [
        f"{own.label}: {'wait' if own.abstained else stay.schema.action_name(own.recommended)}"
        for own in stay.decisions
    ]
    return columns, labels, values.reshape(len(sums), len(columns))


def _decision(own: DecisionExplanation, schema: Schema) -> dict[str, object]:
    """What the template shows of a decision."""
    chance, why = own.probabilities, own.attribution
    return {
        "label": own.label,
        "recommended": "wait" if own.abstained else schema.action_name(own.recommended),
        "chance": None if own.abstained else percent(float(chance[own.recommended])),
        "support": None if own.support is None else percent(float(own.support[own.recommended])),
        "logged": None if own.logged is None else schema.action_name(own.logged),
        "differs": own.logged is not None and own.logged != own.recommended,
        "abstained": own.abstained,
        "wavers": own.wavers,
        "against": None if why is None else schema.action_name(why.against),
        "map": None if why is None else _by_step(why),
        "groups": {} if why is None else why.by_group(),
        "off": None if why is None or why.complete else percent(why.completeness_error),
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


def _strengths(own: GlobalAttribution) -> Markup:
    columns = own.columns[:_ROWS]
    drawn = [
        interval(
            clean(c.name, 24), (c.mean, c.low, c.high), f"{number(c.mean)} ({percent(c.share)})"
        )
        for c in columns
    ]
    axis = Axis(Scale.around([0.0, *(c.high for c in columns)]), f"mean size, {own.unit}")
    return rows(drawn, axis, "Strength by column")


def draw_explanation(own: Explanation) -> bytes:
    """A PNG at 200 dots an inch; the same explanation gives the same bytes."""
    with style(_STYLE):
        if own.stay is not None:
            figure = _draw_stay(own.stay)
        elif own.overall is not None:
            figure = _draw_overall(own.overall)
        else:
            fix = "Write .html or .json."
            raise SettingError("drawing", "is of a stay, or of the whole policy", fix=fix)
        file = io.BytesIO()
        figure.savefig(file, format="png", dpi=200, metadata={"Software": None})
    return file.getvalue()


def _draw_stay(stay: StayExplanation) -> Figure:
    """Attribution of the strongest columns at each decision, above what was done."""
    columns, labels, values = time_line(stay)
    size = max(4.5, 0.42 * len(labels) + 2.6), 0.26 * max(len(columns), 3) + 2.2
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    limit = max(float(np.abs(values).max(initial=0.0)), 1e-12)
    image = axes.imshow(values.T, aspect="auto", cmap="PuOr_r", vmin=-limit, vmax=limit)
    names = [clean(name, 28) for name in columns]
    axes.set_yticks(range(len(names)), names, parse_math=False)
    below = [clean(text, 36) for text in labels]
    axes.set_xticks(range(len(below)), below, rotation=60, ha="right", parse_math=False)
    axes.set_title(f"stay {clean(stay.stay, 40)}", loc="left", parse_math=False)
    figure.colorbar(image, label=f"speaks for the recommendation ({stay.unit})")
    return figure


def _draw_overall(own: GlobalAttribution) -> Figure:
    """Mean sizes of the strongest columns with their limits."""
    columns = own.columns[:_ROWS][::-1]
    figure = Figure(figsize=(6.4, 0.26 * len(columns) + 1.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    mean, low, high = np.array([(c.mean, c.low, c.high) for c in columns]).T
    error = np.stack([mean - low, high - mean])
    axes.barh(range(len(columns)), mean, xerr=error, color=COLOURS[0], capsize=2)
    names = [clean(column.name, 28) for column in columns]
    axes.set_yticks(range(len(columns)), names, parse_math=False)
    axes.set_xlabel(f"mean size of what it adds ({own.unit})")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
