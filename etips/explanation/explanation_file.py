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
from matplotlib.figure import Figure

from etips.data.decisions import Floats
from etips.errors import SettingError
from etips.explanation.attribution import Attribution, GlobalAttribution, SeedAgreement
from etips.explanation.policy_tree import TreeReport, leaf_words
from etips.explanation.stay_explanation import StayExplanation, measure_words, similar_words
from etips.files.json_documents import canonical
from etips.files.writing import write_file
from etips.report.drawings import Axis, Cell, Scale, cell_map, interval, rows
from etips.report.figures import COLOURS, style
from etips.report.section import fill, require_ending
from etips.report.wording import clean, number, percent, signed
from etips.results.records import NOTICE

ENDINGS = (".html", ".json", ".png")

_ROWS = 15  # columns that are listed and drawn
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
        rules: The policy's own, where it is nothing but rules.
    """

    stay: StayExplanation | None = None
    overall: GlobalAttribution | None = None
    seeds: SeedAgreement | None = None
    tree: TreeReport | None = None
    rules: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, object]:
        """JSON-ready; null for what was not asked for, and for numbers that JSON lacks."""
        return {
            "stay": None if self.stay is None else finite(self.stay.to_json()),
            "overall": None if self.overall is None else finite(asdict(self.overall)),
            "seeds": None if self.seeds is None else finite(asdict(self.seeds)),
            "tree": None if self.tree is None else finite(self.tree.to_json()),
            "rules": None if self.rules is None else list(self.rules),
        }

    def report(self, place: str | Path) -> Path:
        """Write a page (.html), the figures (.json) or a drawing (.png); return where it is."""
        place = Path(place)
        require_ending(place, *ENDINGS)
        if place.suffix == ".html":
            content = render_explanation(self).encode()
        else:
            content = (
                draw_explanation(self) if place.suffix == ".png" else canonical(self.to_json())
            )
        write_file(place, content)
        return place

    def __repr__(self) -> str:
        lines = []
        if self.stay is not None:
            lines.append(f"stay {self.stay.stay}")
            for own in self.stay.decisions:
                lines += [f"  {line}" for line in own.lines(self.stay.schema)]
        lines += [] if self.overall is None else _overall_lines(self.overall)
        if self.seeds is not None:
            lines.append(
                f"over {self.seeds.n_policies} seeds: {self.seeds.first_in_common:.0%} of the first"
                f" ten columns in common, rank correlation {self.seeds.rank_correlation:.2f}"
            )
        if self.rules is not None:
            lines.append("the policy is rules, which explain themselves")
            lines += [f"  {rule}" for rule in self.rules]
        if self.tree is not None:
            lines += ["the policy as rules", f"  {self.tree.tree.sentence}"]
            for leaf in self.tree.leaves:
                lines += [f"  {leaf.rule}", f"    {leaf_words(leaf)}"]
            lines += [f"  {line}" for line in self.tree.lines()]
        return "\n".join(lines)


def _overall_lines(own: GlobalAttribution) -> list[str]:
    lines = [f"what the policy goes by: {own.by}, mean size in {own.unit}"]
    if not any(column.mean > 0 for column in own.columns):
        return [*lines, "  no column moves it: it says the same of everybody"]
    for column in own.columns[:_ROWS]:
        limits = f"[{column.low:.3f}, {column.high:.3f}]"
        lines.append(f"  {column.name}: {column.mean:.3f} {limits}, {column.share:.0%}")
    if own.groups:
        groups = ", ".join(f"{name} {share:.0%}" for name, share in own.groups.items())
        lines.append(f"  by organ system: {groups}")
    if own.networks_agree is not None:
        agree = f"{own.networks_agree:.0%} of the first ten columns in common"
        lines.append(f"  its networks have {agree}")
    return lines


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
        forest = _strengths(own.overall)
        shown = {"overall": own.overall, "seeds": own.seeds, "forest": forest}
        sections.append(("overall", goes_by, fill("explanation_overall.html", shown)))
    if own.rules is not None:
        rules = fill("explanation_given_rules.html", {"rules": own.rules})
        sections.append(("own-rules", goes_by, rules))
    if own.tree is not None:
        context = {
            "sentence": own.tree.tree.sentence,
            "leaves": [(leaf.rule, leaf_words(leaf)) for leaf in own.tree.leaves],
            "lines": own.tree.lines(),
        }
        rules = fill("explanation_rules.html", context)
        sections.append(("rules", "The policy as rules", rules))
    title = "Why" if own.stay is None else f"Why: stay {clean(own.stay.stay, 60)}"
    return str(fill("explanation.html", {"title": title, "notice": NOTICE, "sections": sections}))


def _stay(stay: StayExplanation) -> Markup:
    columns, labels, values = time_line(stay)
    decisions = [
        (own, None if own.attribution is None else _by_step(own.attribution))
        for own in stay.decisions
    ]
    context = {
        "map": heat_map(values, columns, labels, "What speaks for it, when"),
        "drawn": bool(columns),
        "unit": stay.unit,
        "decisions": decisions,
        "schema": stay.schema,
        "similar_words": similar_words,
        "measure_words": measure_words,
    }
    return fill("explanation_stay.html", context)


def heat_map(values: Floats, names: list[str], columns: list[str], label: str) -> Markup:
    """Cells coloured by sign and size, from values of shape (columns, names).

    Names stand beside the rows, columns below and in each cell's tooltip; the label is what a
    screen reader reads.
    """
    limit = max(float(np.abs(values).max(initial=0.0)), 1e-12)
    drawn = []
    for name, of_name in zip(names, values.T.tolist(), strict=True):
        cells = []
        for step, value in zip(columns, of_name, strict=True):
            tip = f"{clean(name)}, {clean(step)}: {signed(value)}"
            cells.append(Cell(abs(value) / limit, "c0" if value >= 0 else "c1", tip=tip))
        drawn.append((clean(name, _LETTERS), cells))
    return cell_map(drawn, [clean(step, _BELOW) for step in columns], label)


def time_line(stay: StayExplanation, most: int = _ROWS) -> tuple[list[str], list[str], Floats]:
    """The strongest columns of a stay, its decisions in words, and what each column adds at each.

    Values have shape (decisions, columns).
    """
    sums = [{} if o.attribution is None else o.attribution.by_column() for o in stay.decisions]
    names = dict.fromkeys(name for own in sums for name in own)
    sizes = {name: sum(abs(own.get(name, 0.0)) for own in sums) for name in names}
    columns = sorted(sizes, key=lambda name: -sizes[name])[:most]
    values = np.array([[own.get(name, 0.0) for name in columns] for own in sums])
    labels = [
        f"{own.label}: {'wait' if own.abstained else stay.schema.action_name(own.recommended)}"
        for own in stay.decisions
    ]
    return columns, labels, values.reshape(len(sums), len(columns))


def _by_step(own: Attribution) -> Markup:
    """One decision by column and step; static columns stand at "always"."""
    names = list(own.by_column())[:_ROWS]
    every = [*own.columns, *own.static_columns]
    values = np.zeros((len(own.steps) + 1, len(every)))
    values[:-1, : len(own.columns)] = own.values
    values[-1, len(own.columns) :] = own.static_values
    values, steps = values[:, [every.index(name) for name in names]], [*map(str, own.steps)]
    if any(name in own.static_columns for name in names):
        steps.append("always")
    return heat_map(values[: len(steps)], names, steps, "What speaks for it, by step")


def _strengths(own: GlobalAttribution) -> Markup:
    columns = own.columns[:_ROWS]
    drawn = []
    for column in columns:
        words = f"{number(column.mean)} ({percent(column.share)})"
        drawn.append(
            interval(clean(column.name, 24), (column.mean, column.low, column.high), words)
        )
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
    axes = figure.add_subplot()
    limit = max(float(np.abs(values).max(initial=0.0)), 1e-12)
    image = axes.imshow(values.T, aspect="auto", cmap="PuOr_r", vmin=-limit, vmax=limit)
    axes.set_yticks(range(len(columns)), [clean(own, 28) for own in columns], parse_math=False)
    below = [clean(text, 36) for text in labels]
    axes.set_xticks(range(len(below)), below, rotation=60, ha="right", parse_math=False)
    axes.set_title(f"stay {clean(stay.stay, 40)}", loc="left", parse_math=False)
    figure.colorbar(image, label=f"speaks for the recommendation ({stay.unit})")
    return figure


def _draw_overall(own: GlobalAttribution) -> Figure:
    """Mean sizes of the strongest columns with their limits."""
    columns = own.columns[:_ROWS][::-1]
    figure = Figure(figsize=(6.4, 0.26 * len(columns) + 1.2), layout="constrained")
    axes = figure.add_subplot()
    mean, low, high = np.array([(c.mean, c.low, c.high) for c in columns]).T
    error = np.stack([mean - low, high - mean])
    axes.barh(range(len(columns)), mean, xerr=error, color=COLOURS[0], capsize=2)
    names = [clean(column.name, 28) for column in columns]
    axes.set_yticks(range(len(columns)), names, parse_math=False)
    axes.set_xlabel(f"mean size of what it adds ({own.unit})")
    axes.spines[["top", "right"]].set_visible(False)
    return figure
