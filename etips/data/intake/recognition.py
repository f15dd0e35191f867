"""What each feature column holds, told from its type and, where it is text, from its cells."""

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from etips.data.intake.recipe import ColumnKind
from etips.data.intake.request import Request
from etips.data.intake.text_columns import TextLook, look_at, yes_no_levels
from etips.data.schema import Schema
from etips.data.tables.arrow_columns import is_categorical, is_number, is_text, is_time
from etips.data.tables.sources import Source, whole_column
from etips.errors import DataError, Faults, as_option
from etips.notes import note

MOST_LEVELS = 50
"""Text of more levels is a name, a diagnosis in words or a remark, unless somebody says not."""

_BORN = re.compile(r"birth|(^|_)dob($|_)|geburt|naissance|nascita|nacimiento", re.IGNORECASE)
_ADMITTED = re.compile(
    r"admi(t|ss)|(^|_)adm(_|date|time|$)|in_?time|arriv|random|inclusion|enrol|visit|index_?date"
    r"|aufnahme|entr[eé]e|ingreso",
    re.IGNORECASE,
)
_FEW_LEVELS = 10  # under this, words that occur once each may still be categories
_LIKE_AN_ID = re.compile(
    r"(^|[_\W])(id|mrn|hospnum|pid|uuid|guid|key|index|unnamed.*|row_?(no|num|number|id)?)$"
    r"|^$|[a-z]ID$|(patient|subject|case|record|hosp\w*)_?(no|num|number|id|name)$"
    r"|_(code|cd|nr|concept_?id)$|^(zip|zipcode|postcode|plz|icd\w*|(site|cent(re|er)|ward)_?id)$",
    re.IGNORECASE,
)


def recognise(
    source: Source,
    asked: Request,
    sequence: Sequence[str],
    static: Sequence[str],
    *,
    faults: Faults | None = None,
) -> dict[str, ColumnKind]:
    """The kind of every feature column, or a refusal of all that have none.

    Args:
        source: The table.
        asked: What the caller said; by `asked.like` kinds are looked up, not guessed.
        sequence: Columns of sequential features.
        static: Columns of static features.
        faults: Takes up the refusals, so that the rest of the table can be looked at.
    """
    told, kinds = faults or Faults(), {}
    for name in dict.fromkeys((*sequence, *static)):
        with told.noting():
            if asked.like is not None:
                kinds[name] = _known(source, name, asked.like)
            else:
                still = name in static or asked.step is None
                kinds[name] = _kind(source, name, asked, still)
    if faults is None:
        told.raise_any()
    if asked.like is None:
        if asked.stay is None:
            note("no stay is named: every row is a patient of its own")
        _tell_times(kinds)
        _tell_identifiers(source, asked, kinds)
    return kinds


def _kind(source: Source, name: str, asked: Request, still: bool) -> ColumnKind:
    """The kind of a column that nobody has read before; `still` if it has one time a stay."""
    kind = source.columns[name]
    if types.is_nested(kind):
        fix = f"Leave it out: {_drop(name)}."
        raise DataError(_place(source, name), "must hold numbers, text or times", fix=fix)
    if name in asked.categorical or is_categorical(kind):
        return ColumnKind("category")
    if types.is_boolean(kind):
        return ColumnKind("yes_no")
    if is_number(kind):
        return ColumnKind()
    if is_time(kind):
        return _of_times(source, name, asked, still)
    if types.is_duration(kind) or types.is_time(kind):
        return ColumnKind("duration")
    if is_text(kind):
        return _of_text(source, name, asked, still)
    fix = f"Leave it out: {_drop(name)}."
    raise DataError(_place(source, name), "must hold numbers, text or times", fix=fix)


def _of_text(source: Source, name: str, asked: Request, still: bool) -> ColumnKind:
    form, fault = source.form(name)
    if fault is not None:
        raise fault
    if form.unit:
        note(f"column {name}: numbers in {form.unit}, which was left out")
    if form.kind != "text":
        return ColumnKind() if form.kind == "number" else _of_times(source, name, asked, still)
    look = look_at(source, name)
    if look.n_rows == 0:
        return ColumnKind()
    if look.is_yes_no:
        return ColumnKind("yes_no", yes_no_levels(look.words))
    if len(look.words) > MOST_LEVELS or _is_one_each(source, asked, look):
        rule = "is text that looks like an identifier or free text"
        fix = f"Leave it out: {_drop(name)}; or keep it as a category: {_as_category(name)}."
        raise DataError(_place(source, name), rule, fix=fix)
    return ColumnKind("category")


def _of_times(source: Source, name: str, asked: Request, still: bool) -> ColumnKind:
    """Hours or years; of a date of birth the age, where another time says at what day."""
    if _BORN.search(name) and asked.step is not None and _holds_times(source, asked.step):
        return ColumnKind("age")
    if _BORN.search(name) and asked.step is None:
        columns = [other for other in source.columns if other != name and _ADMITTED.search(other)]
        at = next((other for other in columns if _holds_times(source, other)), None)
        if at is not None:
            return ColumnKind("age", at=at)
    return ColumnKind("years" if still else "hours")


def _holds_times(source: Source, name: str) -> bool:
    kind = source.columns[name]
    return is_time(kind) or (is_text(kind) and source.form(name)[0].kind == "date")


def _is_one_each(source: Source, asked: Request, look: TextLook) -> bool:
    """Whether there are about as many words as rows, or as stays: names rather than levels."""
    n_words = len(look.words)
    if n_words == look.n_rows and n_words >= _FEW_LEVELS // 2:
        return True
    if n_words <= _FEW_LEVELS:
        return False
    stays = look.n_rows if asked.stay is None else _n_distinct(source, asked.stay)
    return n_words >= 0.9 * min(stays, look.n_rows)


def _known(source: Source, name: str, like: Schema) -> ColumnKind:
    """The kind that a column had in the data of `like`, if the table's own fits it."""
    told: Mapping[str, ColumnKind] = {} if like.recipe is None else like.recipe.kinds
    levels = like.categories.get(name)
    wanted = told.get(name, ColumnKind())
    if levels is not None:
        return ColumnKind("category", levels)
    kind, place = source.columns[name], _place(source, name)
    if wanted.at is not None and wanted.at not in source.columns and not is_number(kind):
        raise DataError(_place(source, wanted.at), "is missing from the table")
    if is_number(kind) or (wanted.kind == "yes_no" and is_text(kind)):
        return wanted
    if is_text(kind):
        form, fault = source.form(name)
        if fault is not None:
            raise fault.without_options()  # what a policy was fitted on cannot be left out
        if form.kind == "text" and look_at(source, name).n_rows == 0:
            return ColumnKind()
        kind = form.type
    if wanted.kind in _fitting(kind):
        return wanted
    rule = f"must be read as {_WORDS[wanted.kind]}, as in the data the policy was fitted on"
    raise DataError(place, rule)


def _fitting(kind: pa.DataType) -> tuple[str, ...]:
    """Kinds that a column of this type may be read as."""
    if is_number(kind):
        return ("number", "hours", "years", "age", "duration")
    if is_time(kind):
        return ("hours", "years", "age")
    return ("duration",) if types.is_duration(kind) or types.is_time(kind) else ()


_WORDS = {
    "number": "numbers",
    "category": "a category",
    "yes_no": "yes or no",
    "hours": "times",
    "years": "dates",
    "age": "dates",
    "duration": "lengths of time",
}


def _tell_times(kinds: Mapping[str, ColumnKind]) -> None:
    told = {"hours": "hours since the stay's first row", "years": "years since 2000"}
    for kind, words in told.items():
        names = [name for name, own in kinds.items() if own.kind == kind]
        if names:
            note(f"{_columns(names)} read as {words}")
    for name, own in kinds.items():
        if own.kind == "age":
            note(
                f"column {name} is read as age at {own.at or 'the first row of the stay'}, in years"
            )


def _tell_identifiers(source: Source, asked: Request, kinds: Mapping[str, ColumnKind]) -> None:
    """Name columns of numbers that are called and look like identifiers."""
    named = [
        name
        for name, own in kinds.items()
        if own.kind == "number"
        and types.is_integer(source.columns[name])
        and _LIKE_AN_ID.search(name)
    ]
    if not named:
        return
    units = source.n_rows if asked.stay is None else _n_distinct(source, asked.stay)
    values = {name: _n_distinct(source, name) for name in named}
    alike = [name for name in named if values[name] >= 0.9 * units]
    if alike:
        ids = as_option(*alike)
        note(f"{_columns(alike)} used as a feature but may be an identifier; --drop {ids} omits it")
    codes = [name for name in named if name not in alike and values[name] > MOST_LEVELS]
    if codes:
        which, names = _columns(codes), as_option(*codes)
        what = f"read as numbers but called like a code of more than {MOST_LEVELS} values"
        note(f"{which} {what}: does its size mean anything? --drop {names} omits it")


def _n_distinct(source: Source, name: str) -> int:
    if name not in source.columns:
        return source.n_rows  # a stay that the table lacks is refused with everything else
    column = whole_column(source, name)
    if is_categorical(column.type):
        return len({item for chunk in column.chunks for item in chunk.dictionary.to_pylist()})
    if types.is_null(column.type) or types.is_nested(column.type):
        return len(column)  # refused where it is read
    return int(pc.count_distinct(column, mode="only_valid").as_py())


def _columns(names: Sequence[str]) -> str:
    return f"column {names[0]} is" if len(names) == 1 else f"columns {', '.join(names)} are"


def _place(source: Source, name: str) -> str:
    return f"{source.name}, column {name}"


def _drop(name: str) -> str:
    return f'--drop {as_option(name)} (drop=["{name}"])'


def _as_category(name: str) -> str:
    return f'--categorical {as_option(name)} (categorical=["{name}"])'
