"""What may be said of a table under each name: a column, several, a number, a word."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from etips.data.decisions import MissingLoss
from etips.errors import SettingError

Shape = Literal["text", "list", "text or list", "labels", "whole", "pairs"]
"""A text; a list of texts; either; values of cells; a whole number; a text by column."""


@dataclass(frozen=True)
class FieldKind:
    """What one field of `TableColumns` holds.

    Args:
        shape: Of its value.
        names_columns: Whether it names columns of the table.
        words: The only texts it may be; any if there are none.
        least: Smallest number.
        most: Largest number.
    """

    shape: Shape
    names_columns: bool = True
    words: tuple[str, ...] = ()
    least: int = 0
    most: int | None = None

    def parse(self, name: str, text: str) -> object:
        """A value as somebody types it: lists by comma, pairs as `column=word`.

        A name that holds a comma stands in quotes.
        """
        if self.shape == "text":
            return text.strip()
        if self.shape == "whole":
            return _whole(text)
        typed = next(csv.reader([text], skipinitialspace=True), [])
        parts = [part.strip() for part in typed if part.strip()]
        if self.shape != "pairs":
            return parts
        pairs = [part.partition("=") for part in parts]
        if not all(column.strip() and equals and word.strip() for column, equals, word in pairs):
            raise SettingError(name, "must be column=how, by comma")
        return {column.strip(): word.strip() for column, _, word in pairs}

    def admit(self, name: str, value: object) -> object:
        """The value as it is kept; what is of another kind is refused."""
        if self.shape == "whole":
            return self._number(name, value)
        if self.shape == "pairs":
            if not isinstance(value, Mapping) or not _all_texts([*value, *value.values()]):
                raise SettingError(name, "must be a table of columns, each with a text")
            return dict(value)
        if self.shape == "labels":
            return _labels(name, value)
        if self.shape == "text":
            if self.words and value not in self.words:
                told = " or ".join(f'"{word}"' for word in self.words)
                raise SettingError(name, f"must be {told}")
            if not isinstance(value, str):
                raise SettingError(name, "must be a text")
            return value
        many = [value] if isinstance(value, str) and self.shape == "text or list" else value
        what = "columns" if self.names_columns else "names"
        rule = f"must be a list of {what}"
        if not isinstance(many, Sequence) or isinstance(many, str) or not _all_texts(many):
            raise SettingError(
                name, rule if self.shape == "list" else f"must be a text or a list of {what}"
            )
        return tuple(many)

    def written(self, value: object) -> object:
        """A value as a file holds it: one column is a text where it may be."""
        if isinstance(value, tuple):
            alone = self.shape == "text or list" and len(value) == 1
            return value[0] if alone else list(value)
        return value

    def _number(self, name: str, value: object) -> int:
        if self.most == 1:
            rule = "must be 0 or 1"
        else:
            rule = f"must be a whole number of {self.least} or more"
        if type(value) is not int or value < self.least:
            raise SettingError(name, rule)
        if self.most is not None and value > self.most:
            raise SettingError(name, rule)
        return value


def _labels(name: str, value: object) -> tuple[str, ...]:
    """Values of cells: texts or numbers, one or several."""
    one = isinstance(value, str | int | float)
    many = [value] if one or not isinstance(value, Sequence) else list(value)
    if not all(isinstance(own, str | int | float) for own in many):
        raise SettingError(name, "must be a list of values, texts or numbers")
    return tuple(str(own) for own in many)


def _whole(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        return text


def _all_texts(values: Sequence[object]) -> bool:
    return all(isinstance(value, str) for value in values)


_COLUMN, _COLUMNS = FieldKind("text"), FieldKind("list")

KINDS: Mapping[str, FieldKind] = {
    "stay": _COLUMN,
    "step": _COLUMN,
    "action": FieldKind("text or list"),
    "dose": FieldKind("text or list"),
    "bins": FieldKind("whole", names_columns=False, least=2),
    "loss": _COLUMN,
    "reward": _COLUMN,
    "bad": FieldKind("labels", names_columns=False),
    "static": _COLUMNS,
    "propensity": _COLUMN,
    "group": _COLUMN,
    "eligible": _COLUMN,
    "negative_control": _COLUMN,
    "missing_loss": FieldKind("text", names_columns=False, words=get_args(MissingLoss)),
    "categorical": _COLUMNS,
    "features": _COLUMNS,
    "drop": _COLUMNS,
    "missing": FieldKind("text", names_columns=False, words=("carry", "refuse")),
    "every": FieldKind("text", names_columns=False),
    "combine": FieldKind("pairs"),
    "n_actions": FieldKind("whole", names_columns=False, least=1),
    "actions": FieldKind("list", names_columns=False),
    "lag": FieldKind("whole", names_columns=False, most=1),
    "decimal": FieldKind("text", names_columns=False, words=(",", ".")),
    "dates": FieldKind("text", names_columns=False, words=("dmy", "mdy")),
    "limits": FieldKind("text", names_columns=False, words=("refuse", "value")),
    "na": FieldKind("labels", names_columns=False),
}
"""By field of `TableColumns`."""
