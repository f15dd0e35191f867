"""Treatments as a table has them (text, categories, yes or no, codes) as actions 0..K-1."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from etips.data.decisions import NO_ACTION, Floats, Ints
from etips.data.recipe import ActionReading
from etips.data.schema import MOST_ACTIONS
from etips.data.tables.arrow_columns import is_categorical, is_number, is_text, spell_out
from etips.disclosure import LEAST_PEOPLE
from etips.errors import DataError, SettingError, require
from etips.notes import note

FALSE, TRUE = "false", "true"
"""Labels of a column of booleans."""

LONGEST = 100
"""Characters of a label; it names an action wherever one is shown."""

AMOUNT = 'If it is an amount, name it in --dose (dose="...") instead, which makes classes of it.'
"""What to do about a treatment of many numbers."""


@dataclass(frozen=True, eq=False)
class LabelledColumn:
    """One column of a treatment, cell by cell.

    Args:
        where: The place, for refusals.
        name: Of the column.
        labels: What occurs in it, in order: numbers by size, else by alphabet.
        code: Label of each row, -1 where there is none, shape (n,).
        numbers: The labels as numbers; None if they are not.
        boolean: Whether they are true and false.
    """

    where: str
    name: str
    labels: tuple[str, ...]
    code: Ints
    numbers: Floats | None
    boolean: bool = False

    @property
    def is_range(self) -> bool:
        """Whether the labels are 0..K-1 without a hole."""
        own = self.numbers
        return own is not None and own.tolist() == list(range(own.size))

    @property
    def is_whole(self) -> bool:
        """Whether the labels are whole numbers."""
        return self.numbers is not None and bool((self.numbers == np.round(self.numbers)).all())

    def called(self, label: str, *, alone: bool) -> str:
        """What a label is called: a code among other columns says of what it is one."""
        if self.boolean:
            return self.name if label == TRUE else f"no {self.name}"
        return label if alone or self.numbers is None else f"{self.name} {label}"


def label_column(where: str, name: str, column: pa.ChunkedArray) -> LabelledColumn:
    """Find the labels of a column; blanks around text do not count, and blank text is missing."""
    kind = column.type.value_type if is_categorical(column.type) else column.type
    if not (is_number(kind) or is_text(kind)):
        raise DataError(where, "must be text, numbers, or true and false", fix="Times are none.")
    if types.is_boolean(kind):  # both are treatments, though only one may occur
        flags = pc.fill_null(pc.cast(spell_out(column), pa.int64()), NO_ACTION).to_numpy()
        return LabelledColumn(where, name, (FALSE, TRUE), flags, np.array([0.0, 1.0]), boolean=True)
    encoded = _encode(where, column)
    cells = encoded.dictionary.to_pylist()
    single = bool(types.is_float32(kind) or types.is_float16(kind))
    texts = [_label(cell, digits=6 if single else 12) for cell in cells]
    numbers = (
        None
        if is_text(kind)
        else [float(cell) if isinstance(cell, bool | int | float) else np.nan for cell in cells]
    )
    labels = _in_order({text for text in texts if text}, numbers is not None)
    if is_categorical(column.type) and column.type.ordered:  # low, mid, high: as it was declared
        declared = [_label(level, digits=12) for level in column.chunk(0).dictionary.to_pylist()]
        labels = tuple(sorted(labels, key=declared.index)) if set(labels) <= {*declared} else labels
    place = {label: number for number, label in enumerate(labels)}
    codes = np.array([place.get(text, NO_ACTION) for text in texts] + [NO_ACTION], np.int64)
    rows = pc.fill_null(encoded.indices, len(cells)).to_numpy(zero_copy_only=False)
    if numbers is not None:
        size = np.abs([*numbers, 0.0])
        require(where, "must be finite", ~np.isinf(size)[rows])
        require(where, "must be below 2**53", ~(size >= 2**53)[rows])
    brief = np.array([*(len(text) <= LONGEST for text in texts), True])
    require(where, f"must be text of at most {LONGEST} characters", brief[rows])
    values = None if numbers is None else np.array([float(label) for label in labels])
    return LabelledColumn(where, name, labels, codes[rows], values)


def _encode(where: str, column: pa.ChunkedArray) -> pa.DictionaryArray:
    """The distinct cells of a column, and which of them each row has."""
    plain = spell_out(column)
    if is_text(plain.type):
        try:
            plain = pc.cast(plain, pa.string())
        except pa.ArrowException:
            raise DataError(where, "must be UTF-8 text") from None
    elif types.is_null(plain.type) or types.is_decimal(plain.type) or types.is_float16(plain.type):
        plain = pc.cast(plain, pa.float64())
    encoded = pc.dictionary_encode(plain.combine_chunks())
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    if len(encoded.dictionary) > MOST_ACTIONS:
        raise DataError(
            where, f"must hold at most {MOST_ACTIONS:,} different treatments", fix=AMOUNT
        )
    return encoded


def _label(cell: object, *, digits: int) -> str:
    """A cell as a label; empty where it is missing."""
    if isinstance(cell, str):
        return " ".join("".join(c if c.isprintable() else " " for c in cell).split())
    if isinstance(cell, bool | int):
        return str(int(cell))
    if isinstance(cell, float) and np.isfinite(cell):
        return str(int(cell)) if cell == round(cell) else f"{cell:.{digits}g}"
    return ""


def _in_order(labels: set[str], numeric: bool) -> tuple[str, ...]:
    """Sorted, by size where every label spells a number."""
    try:
        keyed = {label: float(label) for label in labels}
    except ValueError:
        keyed = {}
    if numeric or (keyed and all(np.isfinite(value) for value in keyed.values())):
        return tuple(sorted(labels, key=lambda label: (keyed[label], label)))
    return tuple(sorted(labels))


MOST_LABELS = 200
"""More treatments than this cannot be learned from a log, and are an amount or an identifier."""

MOST_FRACTIONS = 20
"""More numbers than this that are not whole are an amount."""

_LEAST_EACH = 5  # rows a label, where there are many: fewer and it is an amount or an identifier

_OTHER_SPELLINGS = {"0": FALSE, "1": TRUE, "no": FALSE, "yes": TRUE, "n": FALSE, "y": TRUE}


@dataclass(frozen=True, eq=False)
class LabelledActions:
    """Actions of every row and what they are called."""

    action: Ints
    n_actions: int
    names: tuple[str, ...] = ()
    reading: ActionReading | None = None


def find_actions(
    columns: Sequence[LabelledColumn], *, n_actions: int | None, actions: tuple[str, ...]
) -> LabelledActions:
    """Number the treatments of a log."""
    for column in columns:
        if not column.labels:
            raise DataError(column.where, "must hold at least one action")
        _tell_variants(column)
    if len(columns) > 1:
        return _combine(columns, n_actions, actions)
    only = columns[0]
    whole = n_actions or (len(actions) if _fits(only, len(actions)) else None)
    if only.numbers is not None and not only.boolean and (whole is not None or only.is_range):
        action, k = range_actions(only, whole)
        return LabelledActions(action, k, actions)
    _require_few(only)
    order = _order(only.labels, actions)
    if n_actions is not None and len(order) != n_actions:
        rule = f"must be the number of actions, which is {len(order)} here"
        raise SettingError("n_actions", rule, fix="Leave it out, or name all in actions.")
    _tell_codes(only)
    return _labelled(columns, [(label,) for label in order], actions)


def apply_labels(columns: Sequence[LabelledColumn], reading: ActionReading) -> Ints:
    """Actions of another table by the labels of the log; one that the log lacks is refused."""
    own = [
        _translate(column, sorted({labels[place] for labels in reading.labels}))
        for place, column in enumerate(columns)
    ]
    number = {labels: action for action, labels in enumerate(reading.labels)}
    return _numbers_of(columns, own, number, _known(reading.labels))


def apply_names(column: LabelledColumn, names: Sequence[str]) -> Ints:
    """Actions of a table that calls them by their names."""
    own = _translate(column, sorted(names))
    number: dict[tuple[str, ...], int] = {(name,): at for at, name in enumerate(names)}
    return _numbers_of([column], [own], number, _known([(name,) for name in names]))


def range_actions(column: LabelledColumn, n_actions: int | None) -> tuple[Ints, int]:
    """Whole numbers 0..K-1 as they are."""
    if column.numbers is None:
        rule = "must be numbers, as in the log that the policy was fitted on"
        raise DataError(column.where, rule, fix="Give its actions the numbers 0..K-1.")
    values = np.append(column.numbers, 0.0)[column.code]
    known = column.code != NO_ACTION
    require(column.where, "must be a whole number", (values == np.round(values)) | ~known)
    top = (n_actions or MOST_ACTIONS) - 1
    inside = (values >= 0) & (values <= top)
    fix = "Without n_actions (--n-actions) the numbers are labels." if n_actions else ""
    require(column.where, f"must be in 0..{top}", inside | ~known, fix=fix)
    action = np.where(known, values, NO_ACTION).astype(np.int64)
    return action, n_actions or int(action.max(initial=0)) + 1


def _fits(column: LabelledColumn, n_names: int) -> bool:
    """Whether a hole in 0..K-1 is an action that has a name and was never taken."""
    numbers = column.numbers
    if numbers is None or not n_names or not column.is_whole:
        return False
    return bool((numbers >= 0).all() and (numbers < n_names).all())


def _order(labels: tuple[str, ...], actions: tuple[str, ...]) -> tuple[str, ...]:
    """Labels in the order of the names that were given, if those are the labels."""
    if set(labels) <= set(actions):
        return actions
    if set(labels) & set(actions):
        rule = "must be all labels of the table, in any order, or new names for all of them"
        known = _known([(label,) for label in labels])
        raise SettingError("actions", rule, fix=f"The table has {known}.")
    return labels


def _combine(
    columns: Sequence[LabelledColumn], n_actions: int | None, actions: tuple[str, ...]
) -> LabelledActions:
    """Every combination that occurs, in the order of the columns' labels."""
    for column in columns:
        _require_few(column)
    distinct, _ = _distinct(columns)
    found = distinct[(distinct != NO_ACTION).all(axis=1)]
    if not len(found):
        where = ", ".join(column.name for column in columns)
        raise DataError(where, "must hold at least one row in which none is missing")
    if len(found) > MOST_LABELS:
        where = ", ".join(column.name for column in columns)
        rule = f"must make at most {MOST_LABELS} combinations"
        raise DataError(where, rule, fix="Name fewer columns in action (--action).")
    if n_actions is not None and n_actions != len(found):
        rule = f"must be the number of combinations, which is {len(found)} here"
        raise SettingError("n_actions", rule, fix="Leave it out.")
    labels = [
        tuple(column.labels[code] for column, code in zip(columns, row, strict=True))
        for row in found
    ]
    return _labelled(columns, labels, actions)


def _labelled(
    columns: Sequence[LabelledColumn], labels: Sequence[tuple[str, ...]], actions: tuple[str, ...]
) -> LabelledActions:
    reading = ActionReading(tuple(column.name for column in columns), tuple(labels))
    called = [
        [
            column.called(label, alone=len(columns) == 1)
            for column, label in zip(columns, own, strict=True)
        ]
        for own in labels
    ]
    names = actions or tuple(", ".join(own) for own in called)
    if not actions and len(set(names)) < len(names):  # labels hold commas of their own
        names = tuple(" + ".join(own) for own in called)
    if len(names) != len(labels):
        rule = f"must name all {len(labels)} actions or none"
        raise SettingError("actions", rule, fix="They are named in sorted order of the labels.")
    number = {own: action for action, own in enumerate(labels)}
    own_labels = [column.labels for column in columns]
    action = _numbers_of(columns, own_labels, number, "")
    return LabelledActions(action, len(labels), names, reading)


def _numbers_of(
    columns: Sequence[LabelledColumn],
    labels: Sequence[Sequence[str | None]],
    number: Mapping[tuple[str, ...], int],
    known: str,
) -> Ints:
    """Action of each row: -1 where a label is missing; what is no action is refused."""
    distinct, inverse = _distinct(columns)
    actions = np.full(len(distinct), -2, np.int64)
    for place, row in enumerate(distinct):
        if (row == NO_ACTION).any():
            actions[place] = NO_ACTION
            continue
        looked_up = tuple(own[code] for own, code in zip(labels, row, strict=True))
        actions[place] = number.get(looked_up, -2)
    found = actions[inverse]
    fix = f"It knows {known}. Leave those rows out, or give them one of its names."
    rule = "must be one of the actions the policy was fitted on"
    where = columns[0].where
    if len(columns) > 1:
        where = f"{where.rpartition(', ')[0]}, columns " + ", ".join(c.name for c in columns)
    require(where, rule, found != -2, fix=fix)
    return found


def _distinct(columns: Sequence[LabelledColumn]) -> tuple[Ints, Ints]:
    """The combinations of codes that occur, in order, and which of them each row has."""
    sizes = [len(column.labels) + 1 for column in columns]
    if prod(sizes) >= 2**62:
        fix = "Name fewer columns in action (--action)."
        raise DataError(", ".join(own.name for own in columns), "are too many to combine", fix=fix)
    key = np.zeros(columns[0].code.size, np.int64)
    for column, size in zip(columns, sizes, strict=True):
        key = key * size + (column.code + 1)
    keys, inverse = np.unique(key, return_inverse=True)
    codes = np.stack(np.unravel_index(keys, sizes), axis=1) - 1
    return codes.astype(np.int64), inverse


def _translate(column: LabelledColumn, known: Sequence[str]) -> list[str | None]:
    """For each label of a column the known one that it spells; None if it spells none."""
    folded: dict[str, list[str]] = {}
    for label in known:
        folded.setdefault(label.casefold(), []).append(label)
    yes_no = set(known) <= {FALSE, TRUE}
    found: list[str | None] = []
    for label in column.labels:
        alike = folded.get(label.casefold(), [])
        if yes_no and not alike:
            alike = folded.get(_OTHER_SPELLINGS.get(label.casefold(), ""), [])
        found.append(label if label in known else alike[0] if len(alike) == 1 else None)
    return found


def _known(labels: Sequence[tuple[str, ...]]) -> str:
    """The actions of a log, for a refusal: the first of them."""
    shown = ["/".join(own)[:40] for own in labels[:8]]
    return ", ".join(shown) + (", ..." if len(labels) > len(shown) else "")


def _require_few(column: LabelledColumn) -> None:
    """Refuse more labels than there can be treatments."""
    n, numeric = len(column.labels), column.numbers is not None
    known = int((column.code != NO_ACTION).sum())
    most = MOST_FRACTIONS
    if column.is_whole or not numeric:
        most = min(MOST_LABELS, max(MOST_FRACTIONS, known // _LEAST_EACH))
    if numeric and n > MOST_FRACTIONS:
        counts = np.bincount(column.code[column.code != NO_ACTION], minlength=n)
        if (counts < LEAST_PEOPLE).mean() > 0.5:  # as those of an amount are
            most = MOST_FRACTIONS
    if n <= most:
        return
    rule = f"must hold at most {most} different treatments, holds {n:,} different "
    if numeric:
        raise DataError(column.where, f"{rule}numbers", fix=AMOUNT)
    raise DataError(column.where, f"{rule}texts", fix="Group them first. Is it the treatment?")


def _tell_codes(column: LabelledColumn) -> None:
    if column.numbers is None or column.boolean:
        return
    shown = ", ".join(column.labels[:8]) + (", ..." if len(column.labels) > 8 else "")
    hint = f" {AMOUNT}" if len(column.labels) > MOST_FRACTIONS else ""
    if len(column.labels) == 1:
        note(f"{column.where}: the code {shown} is the only action")
        return
    note(
        f"{column.where}: the codes {shown} are labels of {len(column.labels)} actions, not a "
        f"range of numbers (--n-actions makes them one).{hint}"
    )


def _tell_variants(column: LabelledColumn) -> None:
    """Say that labels differ only by case or look alike, which they hardly do on purpose."""
    folded: dict[str, list[str]] = {}
    for label in column.labels:
        folded.setdefault(normalize("NFKC", label).casefold(), []).append(label)
    for alike in folded.values():
        if len(alike) > 1:
            shown = " and ".join(label[:40] for label in alike)
            by_case = len({label.casefold() for label in alike}) == 1
            how = "differ only by case" if by_case else "look alike"
            note(
                f"{column.where}: {shown} {how} and are actions of their own; "
                "spell them alike if they are one."
            )
