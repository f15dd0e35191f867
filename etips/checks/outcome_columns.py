"""Outcomes in words, and what has to be asked of somebody who knows the data."""

import re
from collections.abc import Collection, Sequence

from etips.checks.column_facts import ColumnFacts
from etips.checks.role_words import EARLIER, parts_of
from etips.data.intake.outcome_words import is_missing_mark, read_words, says_yes_no
from etips.data.tables.columns import TableColumns
from etips.disclosure import LEAST_PEOPLE
from etips.errors import as_option

_MOST_WORDS = 10  # of an outcome
_LEAST_REPEATED = 3  # columns of one name and a number that look like measurements in time
_EITHER_WAY = {
    *("outcome", "y", "result", "results", "label", "target", "event", "ergebnis", "resultado"),
    *("esito", "issue", "endpoint", "status"),
}
"""Names that do not say whether 1 is good or bad."""
_VARIABLE = {
    *("variable", "item", "itemid", "item_name", "label", "parameter", "param", "paramcd"),
    *("test", "test_name", "measurement", "analyte", "observation", "merkmal", "name"),
}
_VALUE = {"value", "valuenum", "val", "result", "aval", "value_as_number", "wert", "valeur"}
_CODED = re.compile(r"(code|conceptid|status|cd|type|class|disposition|destination)$")
_MOST_CODES = 12
_NUMBERED = re.compile(r"^(.*?\D)(\d{1,3})$")


def is_earlier(name: str) -> bool:
    """Whether a column is named like something from before the treatment."""
    return bool(EARLIER & set(parts_of(name)))


def says_harm(own: ColumnFacts) -> bool:
    """Whether a column of text has few words, and they say who came to harm."""
    words = _words(own)
    clear = len(words) > 1 and not says_yes_no(words) and read_words(words) is not None
    return own.shape == "text" and clear


def wordy(columns: Sequence[ColumnFacts]) -> list[ColumnFacts]:
    """Columns of text of a few words."""
    return [own for own in columns if own.shape == "text" and len(_words(own)) > 1]


def ask(
    facts: Sequence[ColumnFacts],
    columns: TableColumns,
    *,
    guessed: Collection[str],
    one_row: bool,
) -> tuple[str, ...]:
    """What only somebody who knows the data can answer.

    Args:
        facts: Of all columns.
        columns: Who plays which part.
        guessed: The fields that nobody said.
        one_row: Whether a stay has one row.
    """
    asked = []
    loss = next((own for own in facts if own.name == columns.loss), None)
    if loss is not None and "loss" in guessed:
        asked += _direction(loss)
    if loss is not None and columns.bad is None:
        asked += _harms(loss)
    if one_row:
        asked += _repeated(facts, columns)
    return tuple(asked)


def is_coded(own: ColumnFacts) -> bool:
    """Whether a column holds a few numbers that stand for words, by its name and theirs."""
    few = own.shape == "number" and own.whole and not own.zero_one
    named = _CODED.search("".join(parts_of(own.name))) is not None
    return few and own.n_distinct <= _MOST_CODES and named


def stacked(facts: Sequence[ColumnFacts]) -> list[str]:
    """Whether a table has a row a measurement: the name in one column, the value in another."""
    what = [own for own in facts if own.name.lower() in _VARIABLE and own.shape == "text"]
    value = [own for own in facts if own.name.lower() in _VALUE]
    if not what or not value:
        return []
    name, number = what[0].name, value[0].name
    return [
        f"table: has a row a measurement ({name}, {number}). Give each a column of its own: "
        f"frame.pivot_table(index=[...], columns={name!r}, values={number!r}).reset_index()"
    ]


def _direction(loss: ColumnFacts) -> list[str]:
    """Of an outcome whose name does not say whether 1 is good or bad."""
    if not loss.zero_one or not set(parts_of(loss.name)) <= _EITHER_WAY:
        return []
    one = "1" if loss.shape == "number" else "yes"
    return [f"{loss.name}: is {one} the harm? If it is what is hoped for: --reward {loss.name}"]


def _harms(loss: ColumnFacts) -> list[str]:
    """Of an outcome in words that do not say which is the harm."""
    words = _words(loss)
    if loss.shape != "text" or len(words) < 2 or read_words(words) is not None:
        return []
    if loss.n_rows < LEAST_PEOPLE * len(words):
        return []
    return [f"{loss.name}: which of {', '.join(words)} are the harm? Name them in --bad"]


def _words(own: ColumnFacts) -> list[str]:
    words = [word for word in own.levels if word.strip() and not is_missing_mark(word)]
    return words if len(words) <= _MOST_WORDS else []


def _repeated(facts: Sequence[ColumnFacts], columns: TableColumns) -> list[str]:
    """Measurements that stand beside each other rather than below."""
    out = set(columns.drop or ())
    stems: dict[str, list[ColumnFacts]] = {}
    for own in facts:
        named = _NUMBERED.match(own.name)
        measured = own.shape == "number" and not own.zero_one and own.n_distinct > 2
        if named and measured and own.name not in out:
            stems.setdefault(named[1], []).append(own)
    return [
        f"{own[0].name} to {own[-1].name} look like one thing measured {len(own)} times: were all "
        f"measured before the treatment? If not, --drop {as_option(own[-1].name)} and so on, or "
        "write a row a measurement and name --stay and --step"
        for own in stems.values()
        if len(own) >= _LEAST_REPEATED
    ]
