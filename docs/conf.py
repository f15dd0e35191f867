"""How the site is made: `make docs`, without a network."""

import re

from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx
from sphinx.highlighting import lexers

from etips.version import __version__

project = "etips"
author = "the etips contributors"
copyright = "2026, the etips contributors"  # noqa: A001  # Sphinx's name for it
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "off"
autodoc_typehints = "description"
lexers["csv"] = TextLexer()

html_theme = "pydata_sphinx_theme"
html_title = "etips"
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}

# Links to files beside this folder, which are pages on the site.
_OUTSIDE = {
    "benchmarks/README.md": "benchmarks.md",
    "README.md#ten-lines": "start.md",
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
_LINK = re.compile(rf"\]\((?:\.\./)+({'|'.join(map(re.escape, _OUTSIDE))})")


def _link_within_the_site(_app: object, name: str, source: list[str]) -> None:
    up = "../" * name.count("/")
    source[0] = _LINK.sub(lambda found: f"]({up}{_OUTSIDE[found[1]]}", source[0])


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", _link_within_the_site)
