"""Templates and files of the pages; they look like the report, whose style and words they use."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from jinja2 import ChoiceLoader, Environment, PackageLoader
from markupsafe import Markup

from etips.report.maps import HATCH
from etips.report.page import environment
from etips.results.exhibits import NOTICE
from etips.serve.choices import show_number


@dataclass(frozen=True)
class Asset:
    """A file that pages load.

    Args:
        content: Its bytes.
        kind: Its media type.
    """

    content: bytes
    kind: str


@cache
def templates() -> Environment:
    """Our own templates, then those of the report."""
    loaders = ChoiceLoader([PackageLoader("etips.serve"), PackageLoader("etips.report")])
    made = environment().overlay(loader=loaders)
    made.filters = {**made.filters, "plain": show_number}
    made.globals = {**made.globals, "notice": NOTICE, "hatch": HATCH, "meter": meter}
    return made


def meter(share: float | None, look: str) -> Markup:
    """A small bar; its width is set by our script, since pages hold no styles."""
    width = f"width:{100 * min(max(share or 0.0, 0.0), 1.0):.0f}%"
    bar = Markup('<span class="meter {}" aria-hidden="true"><i data-style="{}"></i></span>')
    return bar.format(look, width)


def render(template: str, **context: object) -> str:
    """A page, or a part of one."""
    return templates().get_template(template).render(**context)


def without_styles(page: str) -> Markup:
    """Drawings of the report with their sizes where the policy for contents allows them.

    It forbids styles inside a page; a script of ours sets them from `data-style`. What is text has
    its quotation marks escaped, so that only attributes are meant.
    """
    return Markup(page.replace(' style="', ' data-style="'))  # noqa: S704


@cache
def assets() -> Mapping[str, Asset]:
    """All files that can be asked for, by name: read once, so that no name is ever a path."""
    report, own = files("etips.report") / "templates", files("etips.serve") / "assets"
    style = (report / "style.css").read_bytes() + b"\n" + (own / "serve.css").read_bytes()
    return {
        "style.css": Asset(style, "text/css"),
        "serve.js": Asset((own / "serve.js").read_bytes(), "text/javascript"),
        "htmx.min.js": Asset((own / "htmx.min.js").read_bytes(), "text/javascript"),
        "icon.svg": Asset((own / "icon.svg").read_bytes(), "image/svg+xml"),
    }
