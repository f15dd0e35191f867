"""What a page is made of: sections, and the templates that give them their form."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from etips.errors import FileError
from etips.report import wording
from etips.results.records import NOTICE
from etips.results.results import Results

Figure = tuple[str, Markup]
"""A heading and its drawing."""


@dataclass(frozen=True)
class Section:
    """One section. To add one, write its function and its template, and list it in `page`.

    Args:
        name: Its anchor on the page.
        title: Its heading.
        template: File in `templates`; it gets what `make` returns, by name, and as `present` the
            names of the sections that are on the page.
        make: Returns what the template shows of the results, or None, which leaves the section
            out: no section stands on a page with nothing in it.
    """

    name: str
    title: str
    template: str
    make: Callable[[Results], Mapping[str, object] | None]


@cache
def environment() -> Environment:
    """Where templates are found, and what they may call."""
    templates = Environment(
        loader=PackageLoader("etips.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    texts = (wording.name, wording.clean, wording.cell, wording.badge, wording.found)
    numbers = (wording.number, wording.signed, wording.count, wording.percent)
    templates.filters |= {show.__name__: show for show in (*texts, *numbers)}
    return templates


def fill(template: str, context: Mapping[str, object]) -> Markup:
    """A template with its values."""
    return Markup(environment().get_template(template).render(**context))  # noqa: S704


def render_page(
    title: str,
    finding: Markup,
    sections: Sequence[tuple[str, str, Markup]],
    *,
    lead: str | None = None,
    seconds: float,
) -> str:
    """A whole page of results.

    Args:
        title: Above it.
        finding: What stands first.
        sections: Anchor, heading and content of each.
        lead: Below the title.
        seconds: That computing the results took.
    """
    context = {"title": title, "finding": finding, "sections": sections, "lead": lead}
    return str(fill("page.html", {**context, "seconds": seconds, "notice": NOTICE}))


def require_ending(place: Path, *endings: str) -> None:
    """Refuse a name that does not say what to write."""
    if place.suffix not in endings:
        *first, last = endings
        raise FileError(str(place), f"must end in {', '.join(first)} or {last}")
