"""A comparison as a page: who has the lower risk, place by place, and what carries over."""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup, escape

from etips.files.json_documents import canonical
from etips.files.writing import write_file
from etips.report.drawings import Axis, Mark, Scale, interval, rows
from etips.report.section import fill, render_page, require_ending
from etips.report.wording import NONE, clean, number, signed, span
from etips.results.comparison_result import (
    CLINICIANS,
    CarriedResult,
    ComparedPolicy,
    Comparison,
    Figure,
    PairResult,
    PlacesResult,
)
from etips.results.conclusions import KINDS, Conclusion
from etips.results.records import ONE_DECISION

_FIGURE = Markup("<b>{}</b> <small>{}</small>")
_SECTIONS = (
    ("pairs", "The differences"),
    ("policies", "The risks"),
    ("places", "Place by place"),
    ("carried", "With another place's patients"),
    ("record", "How it was made"),
)


def write_comparison(comparison: Comparison, place: Path) -> Path:
    """Write the page (.html) or the figures (.json); return where it is."""
    require_ending(place, ".html", ".json")
    text = (
        render_comparison(comparison).encode()
        if place.suffix == ".html"
        else canonical(comparison.to_json())
    )
    write_file(place, text)
    return place


def render_comparison(comparison: Comparison) -> str:
    """The page; it loads nothing from anywhere."""
    context = _context(comparison)
    places = comparison.places
    shown = {
        "pairs": bool(comparison.pairs),
        "places": places is not None,
        "carried": bool(places and places.carried),
    }
    return render_page(
        _title(comparison),
        fill("comparison_finding.html", context),
        [
            (section, title, fill(f"comparison_{section}.html", context))
            for section, title in _SECTIONS
            if shown.get(section, True)
        ],
        seconds=comparison.seconds,
    )


def _title(comparison: Comparison) -> str:
    names = [policy.name for policy in comparison.policies]
    if len(names) == 1 and comparison.places is not None:
        return f"Practice by {clean(comparison.places.column)}"
    return f"{', '.join(clean(own, 30) for own in names[:-1])} and what was done, compared"


def _context(comparison: Comparison) -> dict[str, object]:
    kinds = {pair.finding for pair in comparison.pairs}
    places = comparison.places
    return {
        "comparison": comparison,
        "data": comparison.data,
        "one_decision": ONE_DECISION,
        "clinicians": CLINICIANS,
        "forest": forest(comparison.pairs) if comparison.pairs else None,
        "risks": risks(comparison.policies),
        "legend": [(Conclusion(k, short), means) for k, short, means in KINDS if k in kinds],
        "places": places,
        "place_plots": [] if places is None else place_plots(places),
        "carried": [] if places is None else [_carried_row(own) for own in places.carried],
        "settings": _settings(comparison),
        "shown": _shown,
        "apart": _apart,
    }


def forest(pairs: Sequence[PairResult]) -> Markup:
    """The differences, a row each; left of the line the first of the two has the lower risk."""
    drawn = [
        interval(
            f"{clean(pair.first, 14)} {NONE} {clean(pair.second, 14)}",
            (pair.difference.value, pair.difference.low, pair.difference.high),
            signed(pair.difference.value) if pair.difference.value is not None else "hidden",
            strong=bool(pair.differs and pair.verdict == "reliable"),
            colour=_colour(pair.verdict),
        )
        for pair in pairs
    ]
    scale = _around([(pair.difference, pair.verdict) for pair in pairs])
    axis = Axis(scale, "first minus second (left: first is lower)", [Mark("guide", 0.0)])
    return rows(drawn, axis, "Differences between policies with 95 % intervals")


def risks(policies: Sequence[ComparedPolicy]) -> Markup:
    """The risk of each policy and of what was done."""
    drawn = [
        interval(
            clean(own.name, 30),
            (own.risk.value, own.risk.low, own.risk.high),
            number(own.risk.value),
            strong=own.name == CLINICIANS,
            colour=_colour(own.verdict),
        )
        for own in policies
    ]
    done = (own.risk.value for own in policies if own.name == CLINICIANS)
    guide = [Mark("guide", value) for value in done if value is not None]
    scale = _around([(own.risk, own.verdict) for own in policies], zero=False)
    axis = Axis(scale, "risk (lower is better)", guide)
    return rows(drawn, axis, "Risks with 95 % intervals")


def place_plots(places: PlacesResult) -> list[tuple[str, Markup]]:
    """For each policy its difference to what was done, place by place; else what was done."""
    names = list(dict.fromkeys(own.name for place in places.places for own in place.figures))
    plots = []
    for policy in names:
        done = policy == CLINICIANS
        figures = [
            (place.level, own.risk if done else own.difference, own.verdict)
            for place in places.places
            for own in place.figures
            if own.name == policy
        ]
        drawn = [
            interval(
                clean(level, 30),
                (figure.value, figure.low, figure.high),
                number(figure.value) if done else signed(figure.value),
                colour=_colour(verdict),
            )
            for level, figure, verdict in figures
        ]
        scale = _around([own[1:] for own in figures], zero=not done)
        words = "risk of what was done" if done else "difference to what was done there"
        axis = Axis(scale, words, [] if done else [Mark("guide", 0.0)])
        plots.append(("What was done" if done else policy, rows(drawn, axis, words)))
    return plots


def _colour(verdict: str | None) -> str:
    return "c0" if verdict in (None, "reliable") else "c1"


def _around(figures: Sequence[tuple[Figure, str | None]], *, zero: bool = True) -> Scale:
    """A scale of figures with their verdicts; those without evidence do not stretch it."""
    sound = [own for own, verdict in figures if verdict != "unusable"] or [f for f, _ in figures]
    ends = [end for own in sound for end in (own.value, own.low, own.high)]
    return Scale.around([*ends, *([0.0] if zero else [])])


def _carried_row(own: CarriedResult) -> tuple[CarriedResult, Markup, Markup, Markup, Markup]:
    return (own, _shown(own.here), _shown(own.carried), _shown(own.there), _apart(own.remaining))


def _shown(figure: Figure) -> Markup:
    if figure.value is None:
        return escape(NONE)
    return _FIGURE.format(number(figure.value), span(figure.low, figure.high))


def _apart(figure: Figure) -> Markup:
    if figure.value is None:
        return escape(NONE)
    return _FIGURE.format(signed(figure.value), f"{signed(figure.low)} to {signed(figure.high)}")


def _settings(comparison: Comparison) -> list[tuple[str, str]]:
    told = {**comparison.notes, "estimator": comparison.estimator}
    rules = {
        f"rule {own.name}": own.sentence for own in comparison.policies if own.sentence is not None
    }
    return [(key, clean(value, 600)) for key, value in {**told, **rules}.items()]
