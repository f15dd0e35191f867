"""A comparison as a page: who has the lower risk, place by place, and what carries over."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from etips.files.json_documents import canonical
from etips.files.writing import write_file
from etips.report.drawings import Axis, Mark, Row, Scale, interval, rows
from etips.report.section import fill, render_page, require_ending
from etips.report.wording import NONE, clean, number, signed
from etips.results.comparison_result import (
    CLINICIANS,
    ComparedPolicy,
    Comparison,
    Figure,
    PairResult,
    PlacesResult,
)
from etips.results.conclusions import KINDS, Conclusion
from etips.results.records import ONE_DECISION

_SECTIONS = {
    "pairs": "The differences",
    "policies": "The risks",
    "places": "Place by place",
    "carried": "With another place's patients",
    "record": "How it was made",
}


def write_comparison(comparison: Comparison, place: Path) -> Path:
    """Write the page (.html) or the figures (.json); return where it is."""
    require_ending(place, ".html", ".json")
    if place.suffix == ".html":
        content = render_comparison(comparison).encode()
    else:
        content = canonical(comparison.to_json())
    write_file(place, content)
    return place


def render_comparison(comparison: Comparison) -> str:
    """The page; it loads nothing from anywhere."""
    pairs, places = comparison.pairs, comparison.places
    kinds = {pair.finding for pair in pairs}
    rules = {f"rule {own.name}": own.sentence for own in comparison.policies if own.sentence}
    record = {**comparison.notes, "estimator": comparison.estimator, **rules}
    context = {
        "comparison": comparison,
        "data": comparison.data,
        "one_decision": ONE_DECISION,
        "clinicians": CLINICIANS,
        "forest": forest(pairs) if pairs else None,
        "risks": risks(comparison.policies),
        "legend": [(Conclusion(k, short), means) for k, short, means in KINDS if k in kinds],
        "places": places,
        "place_plots": [] if places is None else place_plots(places),
        "settings": [(key, clean(value, 600)) for key, value in record.items()],
    }
    names = [policy.name for policy in comparison.policies]
    title = f"{', '.join(clean(own, 30) for own in names[:-1])} and what was done, compared"
    if len(names) == 1 and places is not None:
        title = f"Practice by {clean(places.column)}"
    empty = {
        "pairs": not pairs,
        "places": places is None,
        "carried": places is None or not places.carried,
    }
    return render_page(
        title,
        fill("comparison_finding.html", context),
        [
            (section, heading, fill(f"comparison_{section}.html", context))
            for section, heading in _SECTIONS.items()
            if not empty.get(section)
        ],
        seconds=comparison.seconds,
    )


def forest(pairs: Sequence[PairResult]) -> Markup:
    """The differences, a row each; left of the line the first of the two has the lower risk."""
    drawn = []
    for pair in pairs:
        label = f"{clean(pair.first, 14)} {NONE} {clean(pair.second, 14)}"
        words = signed(pair.difference.value) if pair.difference.value is not None else "hidden"
        strong = bool(pair.differs and pair.verdict == "reliable")
        drawn.append(_row(label, pair.difference, pair.verdict, words, strong=strong))
    scale = _around([(pair.difference, pair.verdict) for pair in pairs])
    axis = Axis(scale, "first minus second (left: first is lower)", [Mark("guide", 0.0)])
    return rows(drawn, axis, "Differences between policies with 95 % intervals")


def risks(policies: Sequence[ComparedPolicy]) -> Markup:
    """The risk of each policy and of what was done."""
    drawn, guides = [], []
    for own in policies:
        done, words = own.name == CLINICIANS, number(own.risk.value)
        drawn.append(_row(clean(own.name, 30), own.risk, own.verdict, words, strong=done))
        guides += [Mark("guide", own.risk.value)] if done and own.risk.value is not None else []
    scale = _around([(own.risk, own.verdict) for own in policies], zero=False)
    return rows(drawn, Axis(scale, "risk (lower is better)", guides), "Risks with 95 % intervals")


def place_plots(places: PlacesResult) -> list[tuple[str, Markup]]:
    """For each policy its difference to what was done, place by place; else what was done."""
    names = list(dict.fromkeys(own.name for place in places.places for own in place.figures))
    plots = []
    for policy in names:
        done = policy == CLINICIANS
        figures, drawn = [], []
        for place in places.places:
            for own in place.figures:
                if own.name == policy:
                    figure = own.risk if done else own.difference
                    words = number(figure.value) if done else signed(figure.value)
                    drawn.append(_row(clean(place.level, 30), figure, own.verdict, words))
                    figures.append((figure, own.verdict))
        scale = _around(figures, zero=not done)
        label = "risk of what was done" if done else "difference to what was done there"
        axis = Axis(scale, label, [] if done else [Mark("guide", 0.0)])
        plots.append(("What was done" if done else policy, rows(drawn, axis, label)))
    return plots


def _row(
    label: str, figure: Figure, verdict: str | None, words: str, *, strong: bool = False
) -> Row:
    colour = "c0" if verdict in (None, "reliable") else "c1"
    figures = figure.value, figure.low, figure.high
    return interval(label, figures, words, strong=strong, colour=colour)


def _around(figures: Sequence[tuple[Figure, str | None]], *, zero: bool = True) -> Scale:
    """A scale of figures with their verdicts; those without evidence do not stretch it."""
    sound = [own for own, verdict in figures if verdict != "unusable"] or [f for f, _ in figures]
    ends = [end for own in sound for end in (own.value, own.low, own.high)]
    return Scale.around([*ends, *([0.0] if zero else [])])
