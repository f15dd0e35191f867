"""Words in a column of text: how many there are, and whether they say yes and no."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from etips.data.decisions import Bools, Floats
from etips.data.tables.arrow_columns import as_text, is_text
from etips.data.tables.sources import Source

MOST_KEPT = 1001
"""Distinct words that are kept while a column is looked at; more than can ever be levels."""

NO_WORDS = ("no", "n", "false", "nein", "non")
YES_WORDS = ("yes", "y", "true", "ja", "oui")

_BLANK = "^(nan|NaN|NAN|<NA>)?$"


@dataclass(frozen=True)
class TextLook:
    """What was seen in a column of text.

    Args:
        n_rows: Rows that are not missing.
        words: The distinct texts, at most `MOST_KEPT`.
    """

    n_rows: int
    words: frozenset[str]

    @property
    def is_yes_no(self) -> bool:
        """Whether every text says yes or no, or all are one of t and f."""
        said = {word.lower() for word in self.words}
        return bool(said) and (said <= {*NO_WORDS, *YES_WORDS} or said == {"t", "f"})


def plain_text(where: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of text without spaces around it, null where it is blank or says NaN."""
    text = pc.utf8_trim_whitespace(as_text(where, column))
    blank = pc.match_substring_regex(text, _BLANK)
    return pc.if_else(blank, pa.scalar(None, pa.string()), text)


def look_at(source: Source, name: str) -> TextLook:
    """Read one column of text part by part."""
    rows, words = 0, set[str]()
    for part in source.parts([name]):
        text = plain_text(f"{source.name}, column {name}", part.column(name))
        rows += len(text) - text.null_count
        if len(words) < MOST_KEPT:
            distinct = pc.unique(text).drop_null().slice(0, MOST_KEPT)
            words.update(distinct.to_pylist())
    return TextLook(rows, frozenset(sorted(words)[:MOST_KEPT]))


def text_flags(where: str, column: pa.ChunkedArray) -> tuple[Floats, int]:
    """Yes as 1, no as 0, NaN where it is missing or neither; and how many are neither."""
    text = pc.utf8_lower(plain_text(where, column))
    yes, no = (_among(text, words) for words in ((*YES_WORDS, "t"), (*NO_WORDS, "f")))
    values = np.where(yes, 1.0, np.where(no, 0.0, np.nan))
    return values, int(np.isnan(values).sum()) - text.null_count


def yes_no_levels(words: Iterable[str]) -> tuple[str, str]:
    """What stands for no and for yes in these words, spelt as they are."""
    said = sorted(words)
    no = next((word for word in said if word.lower() in (*NO_WORDS, "f")), "no")
    return no, next((word for word in said if word.lower() in (*YES_WORDS, "t")), "yes")


def is_textual(kind: pa.DataType) -> bool:
    """Whether a column holds text, not as a dictionary."""
    return is_text(kind) and not types.is_dictionary(kind)


def _among(text: pa.ChunkedArray, words: tuple[str, ...]) -> Bools:
    """Where the text is one of the words; an Arrow array of them would import pandas."""
    found = pc.match_substring_regex(text, f"^({'|'.join(words)})$")
    answer: Bools = pc.fill_null(found, False).to_numpy()
    return answer
