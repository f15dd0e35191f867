"""A comparison as a page: who has the lower risk, place by place, and what carries over."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup, escape

from etips.errors import FileError
from etips.files.json_documents import canonical
from etips.files.writing import write_file
from etips.report.maps import HATCH
from etips.report.notebook import COLOURS
from etips.report.page import environment
from etips.report.row_plots import Axis, Row, interval_rows
from etips.report.svg import Scale
from etips.report.wording import FOUND_MARKS, NONE, clean, count, name, number, signed, span
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
from etips.results.exhibits import NOTICE
from etips.results.whole_stay_result import ONE_DECISION

_FIGURE = Markup("<b>{}</b> <small>{}</small>")
_CELL = "padding:.35em .8em;text-align:left;vertical-align:top"
_SECTIONS = (
    ("pairs", "The differences"),
    ("policies", "The risks"),
    ("places", "Place by place"),
    ("carried", "With another place's patients"),
    ("record", "How it was made"),
)


def require_ending(place: Path) -> None:
    """Refuse a name that does not say what to write."""
    if place.suffix not in (".html", ".json"):
        raise FileError(str(place), "must end in .html or .json")


def write_comparison(comparison: Comparison, place: Path) -> Path:
    """Write the page (.html) or the figures (.json); return where it is."""
    require_ending(place)
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
    shown = [
        ({"name": section, "title": title}, _body(f"comparison_{section}.html", context))
        for section, title in _SECTIONS
        if _has(comparison, section)
    ]
    return (
        environment()
        .get_template("page.html")
        .render(
            title=_title(comparison),
            lead=None,
            notice=NOTICE,
            hatch=HATCH,
            finding=_body("comparison_finding.html", context),
            sections=shown,
            seconds=comparison.seconds,
        )
    )


def _has(comparison: Comparison, section: str) -> bool:
    if section == "pairs":
        return bool(comparison.pairs)
    if section == "places":
        return comparison.places is not None
    return section != "carried" or bool(comparison.places and comparison.places.carried)


def _title(comparison: Comparison) -> str:
    names = [policy.name for policy in comparison.policies]
    if len(names) == 1 and comparison.places is not None:
        return f"Practice by {clean(comparison.places.column)}"
    return f"{', '.join(clean(own, 30) for own in names[:-1])} and what was done, compared"


def _body(template: str, context: Mapping[str, object]) -> Markup:
    return Markup(environment().get_template(template).render(**context))  # noqa: S704


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
    rows = [
        Row(
            f"{clean(pair.first, 14)} {NONE} {clean(pair.second, 14)}",
            pair.difference.value,
            pair.difference.low,
            pair.difference.high,
            signed(pair.difference.value) if pair.difference.value is not None else "hidden",
            strong=bool(pair.differs and pair.verdict == "reliable"),
            colour="c0" if pair.verdict == "reliable" else "c1",
        )
        for pair in pairs
    ]
    scale = _around(
        [pair.difference for pair in pairs if pair.verdict != "unusable"]
        or [pair.difference for pair in pairs]
    )
    axis = Axis(scale, "first minus second (left: first is lower)", 0.0)
    return interval_rows(rows, axis, "Differences between policies with 95 % intervals")


def risks(policies: Sequence[ComparedPolicy]) -> Markup:
    """The risk of each policy and of what was done."""
    done = next((own.risk.value for own in policies if own.name == CLINICIANS), None)
    rows = [
        Row(
            clean(own.name, 30),
            own.risk.value,
            own.risk.low,
            own.risk.high,
            number(own.risk.value),
            strong=own.name == CLINICIANS,
            colour="c0" if own.verdict in (None, "reliable") else "c1",
        )
        for own in policies
    ]
    sound = [own.risk for own in policies if own.verdict != "unusable"]
    axis = Axis(_around(sound, zero=False), "risk (lower is better)", done)
    return interval_rows(rows, axis, "Risks with 95 % intervals")


def place_plots(places: PlacesResult) -> list[tuple[str, Markup]]:
    """For each policy its difference to what was done, place by place; else what was done."""
    names = list(dict.fromkeys(own.policy for place in places.places for own in place.figures))
    plots = []
    for policy in names:
        done = policy == CLINICIANS
        found = [
            (place.level, own.risk if done else own.difference, own.verdict)
            for place in places.places
            for own in place.figures
            if own.policy == policy
        ]
        rows = [
            Row(
                clean(level, 30),
                figure.value,
                figure.low,
                figure.high,
                number(figure.value) if done else signed(figure.value),
                colour="c0" if verdict in (None, "reliable") else "c1",
            )
            for level, figure, verdict in found
        ]
        sound = [own for _, own, verdict in found if verdict != "unusable"]
        scale = _around(sound or [own for _, own, _ in found], zero=not done)
        words = "risk of what was done" if done else "difference to what was done there"
        heading = "What was done" if done else policy
        plots.append(
            (heading, interval_rows(rows, Axis(scale, words, None if done else 0.0), words))
        )
    return plots


def _around(figures: Sequence[Figure], *, zero: bool = True) -> Scale:
    ends = [end for own in figures for end in (own.value, own.low, own.high)]
    return Scale.around([*ends, *([0.0] if zero else [])], 0, 100)


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


def show_pairs(comparison: Comparison) -> str:
    """A table of the differences inside a notebook; names are text, whatever they hold."""
    heads = Markup("").join(
        Markup('<th scope="col" style="{}">{}</th>').format(_CELL, title)
        for title in ("Compared", "Finding", "Difference", "p (Holm)", "Why")
    )
    rows = Markup("").join(_pair_row(pair) for pair in comparison.pairs)
    caption = (
        f"{count(comparison.data.n_decisions)} decisions; first minus second, below zero the first "
        f"is better. {NOTICE}"
    )
    return str(
        Markup(
            '<table class="etips-results"><caption style="text-align:left">{}</caption>'
            "<thead><tr>{}</tr></thead><tbody>{}</tbody></table>"
        ).format(caption, heads, rows)
    )


def _pair_row(pair: PairResult) -> Markup:
    ink, ground = COLOURS[pair.finding]
    look = f"background:{ground};color:{ink};border-radius:1em;padding:.1em .7em;font-weight:600"
    mark = FOUND_MARKS[pair.finding]
    cells = (
        Markup("<b>{}</b> against <b>{}</b>").format(name(pair.first), name(pair.second)),
        Markup('<span style="{}">{} {}</span><br><small>verdict: {}</small>').format(
            look, mark, clean(pair.words, 120), pair.verdict or NONE
        ),
        _apart(pair.difference),
        number(pair.adjusted_p),
        Markup("<br>").join(clean(reason, 300) for reason in pair.reasons),
    )
    inside = Markup("").join(Markup('<td style="{}">{}</td>').format(_CELL, c) for c in cells)
    return Markup("<tr>{}</tr>").format(inside)
