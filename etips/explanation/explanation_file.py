"""An explanation written as a file: a page, its figures, or a drawing."""

import math
from pathlib import Path

from etips.errors import FileError
from etips.explanation.explanation_figure import draw_explanation
from etips.explanation.explanation_page import render_explanation
from etips.explanation.explanation_parts import ExplanationParts
from etips.files.json_documents import canonical
from etips.files.writing import write_file

ENDINGS = (".html", ".json", ".png")


def require_ending(place: Path) -> None:
    """Refuse a name that does not say what to write."""
    if place.suffix not in ENDINGS:
        raise FileError(str(place), f"must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")


def write_explanation(parts: ExplanationParts, place: Path) -> Path:
    """Write a page (.html), the figures (.json) or a drawing (.png); return where it is."""
    require_ending(place)
    if place.suffix == ".html":
        content = render_explanation(parts).encode()
    elif place.suffix == ".json":
        content = canonical({name: finite(own) for name, own in parts.to_json().items()})
    else:
        content = draw_explanation(parts)
    write_file(place, content)
    return place


def finite(value: object) -> object:
    """The same with null for numbers that JSON lacks."""
    if isinstance(value, dict):
        return {str(name): finite(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [finite(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
