"""Names, numbers and verdicts as a page shows them, whatever a data set calls its columns."""

import unicodedata
from collections.abc import Mapping

from markupsafe import Markup

from etips.results.conclusions import Conclusion, Kind

SHORT, LONG = 60, 300
"""Characters of a name that are shown, and that its tooltip holds."""

MARKS = {"reliable": "●", "doubtful": "!", "unusable": "✕"}
"""Shape beside the colour: a verdict must be legible in black and white. That a number is reliable
says nothing good or bad of the policy, so that it has neither a tick nor a colour."""

FOUND_MARKS: Mapping[Kind, str] = {
    "better": "✓",
    "partly": "◐",
    "none": "=",
    "worse": "▲",
    "doubtful": "!",
    "unusable": "✕",
    "unknown": "?",
}
"""Of what was found, verdict included."""

NONE, MINUS, PERCENT = "\u2013", "\u2212", "\u00a0%"
"""The last does not part from its number at the end of a line."""


def clean(text: object, limit: int = SHORT) -> str:
    """One line without control or direction marks, cut to `limit` characters."""
    words = str(text)[: 4 * LONG].split()
    line = " ".join("".join(c for c in word if unicodedata.category(c)[0] != "C") for word in words)
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def name(text: object, limit: int = SHORT) -> Markup:
    """A name of the user's own, kept from turning the text around it; the tooltip has more."""
    short, full = clean(text, limit), clean(text, LONG)
    if short == full:
        return Markup("<bdi>{}</bdi>").format(short)
    return Markup('<bdi title="{}">{}</bdi>').format(full, short)


def number(value: object, digits: int = 3) -> str:
    """A number with so many decimals, thousands apart; a dash where there is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NONE
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if round(value, digits) == 0 else text.replace("-", MINUS)


def signed(value: object, digits: int = 3) -> str:
    """The same with its sign."""
    text = number(value, digits)
    return f"+{text}" if text[:1].isdigit() and text.strip("0.") else text


def count(value: object) -> str:
    """A whole number with thousands apart; what is hidden says so."""
    return "hidden" if number(value) == NONE else number(value, 0)


def percent(value: object, digits: int = 0) -> str:
    """A share as a percentage; what is there and rounds to nothing says so."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return NONE
    text = f"{100 * value:.{digits}f}"
    if value > 0 and not text.strip("0."):
        return f"<{10**-digits:g}{PERCENT}"
    return f"{text}{PERCENT}".replace("-", MINUS)


def span(low: object, high: object, digits: int = 3) -> str:
    """An interval in words."""
    return f"{number(low, digits)} to {number(high, digits)}"


def found(conclusion: Conclusion) -> Markup:
    """What was found: a mark, a colour and the words."""
    shape = Markup('<span class="badge found-{}"><span aria-hidden="true">{}</span> {}</span>')
    return shape.format(conclusion.kind, FOUND_MARKS[conclusion.kind], conclusion.words)


def badge(label: object) -> Markup:
    """The verdict: a mark, a colour where it warns, and the word."""
    word = str(label) if label in MARKS else "no verdict"
    shape = Markup('<span class="badge {}"><span aria-hidden="true">{}</span> {}</span>')
    return shape.format(word.replace(" ", "-"), MARKS.get(word, "?"), word)


def cell(value: object) -> str:
    """A cell of a study's own table."""
    if isinstance(value, float):
        return number(value, 4)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    text = NONE if value is None else clean(value, 200)
    if text[:1] == "-" and (len(text) == 1 or text[1].isdigit()):
        return (NONE if len(text) == 1 else MINUS) + text[1:]
    return text
