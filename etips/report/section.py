"""What a section of the page is: a heading, a template, and what the template shows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from etips.results.results import Results

Figure = tuple[str, Markup]
"""A heading and its drawing."""


@dataclass(frozen=True)
class Section:
    """One section. To add one, write its module and its template, and list it in `page`.

    Args:
        name: Its anchor on the page.
        title: Its heading.
        template: File in `templates`; it gets what `make` returns, by name, and as `present` the
            names of the sections that are on the page.
        make: Takes the results and returns what the template shows of them, or None, which leaves
            the section out: no section stands on a page with nothing in it.
    """

    name: str
    title: str
    template: str
    make: Callable[[Results], Mapping[str, object] | None]
