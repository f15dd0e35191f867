"""Which column of a table plays which part, and what each feature column holds."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from fnmatch import fnmatchcase

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types
from pyarrow.types import is_null

from etips.data.recipe import ColumnKind
from etips.data.schema import MISSING_SUFFIX, Roles, Schema
from etips.data.tables.arrow_columns import (
    NO_WORDS,
    YES_WORDS,
    is_categorical,
    is_number,
    is_text,
    is_time,
    plain_text,
    yes_no_levels,
)
from etips.data.tables.sources import Source, whole_column
from etips.data.tables.table_spec import TableSpec
from etips.data.tables.text_cells import FOOTER
from etips.errors import DataError, Faults, SettingError, as_option
from etips.notes import note

_OF_NUMBERS = ("step", "loss", "propensity", "negative_control", "eligible")


@dataclass(frozen=True)
class Layout:
    """The parts columns play; names are those of the table.

    Args:
        roles: Name of each role's column, present or not.
        present: Roles that the table has, of `Roles`' fields.
        sequence: Columns read as sequential features.
        static: Columns read as static features.
        kinds: How each of the two is read.
        treatment: Columns that say what was done: of the action, or of doses.
        timed: Features of kind `hours` and `age`, whose cells hold times rather than those already.
        spelt: Columns of text that spell numbers or dates, to be read as such.
    """

    roles: Roles
    present: frozenset[str]
    sequence: tuple[str, ...]
    static: tuple[str, ...]
    kinds: Mapping[str, ColumnKind] = field(default_factory=dict)
    treatment: tuple[str, ...] = ()
    timed: tuple[str, ...] = ()
    spelt: tuple[str, ...] = ()

    @property
    def categorical(self) -> frozenset[str]:
        """Features that become one column a level."""
        return frozenset(name for name, own in self.kinds.items() if own.kind == "category")

    def numeric(self, columns: Sequence[str]) -> list[str]:
        """Those of `columns` that are read as numbers."""
        categorical = self.categorical
        return [name for name in columns if name not in categorical]

    def role_columns(self) -> dict[str, str]:
        """Column of each role that is present, the action apart."""
        return {role: getattr(self.roles, role) for role in sorted(self.present - {"action"})}

    def other_columns(self) -> list[str]:
        """Columns that are read whole: of roles, of the treatment, categories and times."""
        own = [*self.role_columns().values(), *self.treatment, *sorted(self.categorical)]
        dates = [self.kinds[name].at for name in self.timed]
        return list(dict.fromkeys([*own, *self.timed, *(name for name in dates if name)]))


def lay_out(source: Source, spec: TableSpec, faults: Faults) -> Layout:
    """Give every column its part and its kind, or refuse by name what has none."""
    with faults.noting():
        spec = expand(source, spec)
    named = {role: column for role, column in spec.columns.items() if column is not None}
    if spec.action == spec.treatment and len(spec.action) == 1:
        named["action"] = spec.action[0]
    others = [name for name in spec.treatment if name != named.get("action")]
    with faults.noting():
        require_columns(source, [*named.values(), *others])
    if spec.like is not None:
        faults.raise_any()
    elif faults.noted:  # what there is of features can still be judged
        named = {role: column for role, column in named.items() if column in source.columns}
    if spec.like is None:
        sequence = _chosen(source, spec, {*named.values(), *others})
        static = spec.static
    else:
        sequence = _wanted(source, spec.like, spec.like.sequence)
        static = _wanted(source, spec.like, spec.like.static)
    numeric = _measured(spec, named)
    spelt = _spelt_roles(source, numeric, faults)
    parts = Counter([*named.values(), *others, *static, *sequence])
    for name in [name for name, times in parts.items() if times > 1]:
        faults.note(SettingError(f"column {name}", "must play one part only"))
    beyond = bool(faults.noted)
    static = tuple(name for name in static if name in source.columns)
    kinds = recognise(source, spec, sequence, static, faults)
    if beyond or spec.like is not None:
        faults.raise_any()
    usual = Roles() if spec.like is None else spec.like.roles
    return Layout(
        roles=_roles(named, {*sequence, *static, *others, *spec.drop}, usual),
        present=frozenset(named) | ({"action"} if spec.treatment else set()),
        sequence=tuple(name for name in sequence if name in kinds),
        static=tuple(name for name in static if name in kinds),
        kinds=kinds,
        treatment=spec.treatment,
        timed=tuple(
            name
            for name, own in kinds.items()
            if own.kind in ("hours", "age") and not is_number(source.columns[name])
        ),
        spelt=_spelt(source, spelt, kinds),
    )


def _measured(spec: TableSpec, named: Mapping[str, str]) -> dict[str, str]:
    """Columns of roles and of doses, less an outcome whose values are names, not numbers."""
    labelled: set[str | None] = set()
    if spec.bad:
        labelled = {spec.columns["loss"]}
    elif spec.like is not None and spec.like.recipe and spec.like.recipe.outcome.others:
        labelled = {spec.like.roles.loss}
    amounts = {f"dose {at}": name for at, name in enumerate(spec.dose)}
    return {r: name for r, name in {**named, **amounts}.items() if name not in labelled}


def _spelt_roles(source: Source, named: Mapping[str, str], faults: Faults) -> list[str]:
    """Columns of text that play a part and spell numbers or times; what is wrong is taken up.

    A stay may be any text, but the line below a table (Total) is none.
    """
    spelt = []
    for role, column in named.items():
        numeric = role in _OF_NUMBERS or role.startswith("dose ")
        if column not in source.columns or not is_text(source.columns[column]):
            continue
        if not numeric and role != "stay":
            continue
        form, fault = source.form(column)
        if numeric and form.kind != "text":
            spelt.append(column)
        footer = fault is not None and fault.fix.startswith(FOOTER)
        if fault is not None and role != "eligible" and (numeric or footer):
            faults.note(fault.without_options())
    return spelt


def _spelt(
    source: Source, roles: Sequence[str], kinds: Mapping[str, ColumnKind]
) -> tuple[str, ...]:
    """Columns of text that are to be read as numbers or dates."""
    features = [name for name, own in kinds.items() if own.kind not in ("category", "yes_no")]
    dates = [own.at for own in kinds.values() if own.at is not None]
    once = dict.fromkeys([*roles, *features, *dates])
    return tuple(name for name in once if is_text(source.columns[name]))


def expand(source: Source, spec: TableSpec) -> TableSpec:
    """The same with `R*` and the like spelt out, and refused where no column is called so."""
    faults, found = Faults(), {}
    for argument in ("static", "categorical", "features", "drop"):
        names: dict[str, None] = {}
        for pattern in getattr(spec, argument):
            own = [pattern]
            if pattern not in source.columns and any(sign in pattern for sign in "*?["):
                own = [name for name in source.columns if fnmatchcase(name, pattern)]
                if not own:
                    error = DataError(f"{source.name}, {argument} {pattern}", "matches no column")
                    faults.note(error)
            elif pattern in names:
                raise SettingError(f"column {pattern}", "must play one part only")
            with faults.noting():
                require_columns(source, own)
            names |= dict.fromkeys(own)
        found[argument] = tuple(names)
    faults.raise_any()
    return spec.model_copy(update=found)


def _chosen(source: Source, spec: TableSpec, taken: set[str]) -> tuple[str, ...]:
    """The columns that are sequential features."""
    twice = sorted(set(spec.drop) & {*taken, *spec.static})
    if twice:
        raise SettingError(f"column {twice[0]}", "must play one part only", fix="See drop.")
    free = [name for name in source.columns if name not in {*taken, *spec.static, *spec.drop}]
    if not spec.features:
        return tuple(free)
    wanted = set(spec.features)
    return tuple(name for name in free if name in wanted)


def _roles(named: dict[str, str], features: set[str], usual: Roles) -> Roles:
    """The roles that were named, and for those the table lacks a name that is not taken."""
    roles, taken = dict(named), features | set(named.values())
    for role in fields(Roles):
        if role.name not in named:
            name = getattr(usual, role.name)
            while name in taken:
                name += "_"
            roles[role.name] = name
            taken.add(name)
    return Roles(**roles)


def require_columns(source: Source, names: Sequence[str], *, fix: str = "") -> None:
    """Refuse columns that the table does not have, all of them at once."""
    faults = Faults()
    for name in dict.fromkeys(names):
        if name not in source.columns:
            place = f"{source.name}, column {name}"
            folded = {other.lower(): other for other in source.columns}
            close = get_close_matches(name.lower(), folded, n=3, cutoff=0.75)
            meant = ", ".join(folded[other] for other in close)
            remedy = f"Do you mean {meant}?" if meant else fix
            if name in source.index:
                remedy = "It is the index of the frame: pass frame.reset_index()."
            faults.note(DataError(place, "is missing from the table", fix=remedy))
    faults.raise_any()


def _wanted(source: Source, like: Schema, features: Sequence[str]) -> tuple[str, ...]:
    """Columns of the table that `features` are made of: themselves, or what they derive from."""
    columns: dict[str, None] = {}
    elapsed = None if like.recipe is None else like.recipe.elapsed
    for feature in features:
        origin = feature.removesuffix(MISSING_SUFFIX)
        ours = feature.endswith(MISSING_SUFFIX) and origin in like.indicators
        there = feature in source.columns
        empty = there and ours and is_null(source.columns[feature])
        if there and not empty:
            columns[feature] = None
        elif feature != elapsed:
            category = next((c for c in like.categories if feature.startswith(f"{c}=")), None)
            columns[origin if category is None else category] = None
    strict = like.recipe is not None and like.recipe.missing == "refuse"
    fix = "" if strict else "The policy was fitted on it. Add it; its cells may be empty."
    require_columns(source, list(columns), fix=fix)
    return tuple(columns)


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
    spec: TableSpec,
    sequence: Sequence[str],
    static: Sequence[str],
    faults: Faults,
) -> dict[str, ColumnKind]:
    """The kind of every feature column, what is wrong with any is taken up."""
    kinds = {}
    for name in dict.fromkeys((*sequence, *static)):
        with faults.noting():
            if spec.like is not None:
                kinds[name] = _known(source, name, spec.like)
            else:
                still = name in static or spec.step is None
                kinds[name] = _kind(source, name, spec, still)
    if spec.like is None:
        if spec.stay is None:
            note("no stay is named: every row is a patient of its own")
        _tell_times(kinds)
        _tell_identifiers(source, spec, kinds)
    return kinds


def _kind(source: Source, name: str, spec: TableSpec, still: bool) -> ColumnKind:
    """The kind of a column that nobody has read before; `still` if it has one time a stay."""
    kind = source.columns[name]
    if types.is_nested(kind):
        fix = f"Leave it out: {_drop(name)}."
        raise DataError(_place(source, name), "must hold numbers, text or times", fix=fix)
    if name in spec.categorical or is_categorical(kind):
        return ColumnKind("category")
    if types.is_boolean(kind):
        return ColumnKind("yes_no")
    if is_number(kind):
        return ColumnKind()
    if is_time(kind):
        return _of_times(source, name, spec, still)
    if types.is_duration(kind) or types.is_time(kind):
        return ColumnKind("duration")
    if is_text(kind):
        return _of_text(source, name, spec, still)
    fix = f"Leave it out: {_drop(name)}."
    raise DataError(_place(source, name), "must hold numbers, text or times", fix=fix)


def _of_text(source: Source, name: str, spec: TableSpec, still: bool) -> ColumnKind:
    form, fault = source.form(name)
    if fault is not None:
        raise fault
    if form.unit:
        note(f"column {name}: numbers in {form.unit}, which was left out")
    if form.kind != "text":
        return ColumnKind() if form.kind == "number" else _of_times(source, name, spec, still)
    look = look_at(source, name)
    if look.n_rows == 0:
        return ColumnKind()
    if look.is_yes_no:
        return ColumnKind("yes_no", yes_no_levels(look.words))
    if len(look.words) > MOST_LEVELS or _is_one_each(source, spec, look):
        rule = "is text that looks like an identifier or free text"
        keep = f'--categorical {as_option(name)} (categorical=["{name}"])'
        fix = f"Leave it out: {_drop(name)}; or keep it as a category: {keep}."
        raise DataError(_place(source, name), rule, fix=fix)
    return ColumnKind("category")


def _of_times(source: Source, name: str, spec: TableSpec, still: bool) -> ColumnKind:
    """Hours or years; of a date of birth the age, where another time says at what day."""
    if _BORN.search(name) and spec.step is not None and _holds_times(source, spec.step):
        return ColumnKind("age")
    if _BORN.search(name) and spec.step is None:
        columns = [other for other in source.columns if other != name and _ADMITTED.search(other)]
        at = next((other for other in columns if _holds_times(source, other)), None)
        if at is not None:
            return ColumnKind("age", at=at)
    return ColumnKind("years" if still else "hours")


def _holds_times(source: Source, name: str) -> bool:
    kind = source.columns[name]
    return is_time(kind) or (is_text(kind) and source.form(name)[0].kind == "date")


def _is_one_each(source: Source, spec: TableSpec, look: "TextLook") -> bool:
    """Whether there are about as many words as rows, or as stays: names rather than levels."""
    n_words = len(look.words)
    if n_words == look.n_rows and n_words >= _FEW_LEVELS // 2:
        return True
    if n_words <= _FEW_LEVELS:
        return False
    stays = look.n_rows if spec.stay is None else _n_distinct(source, spec.stay)
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


def _tell_identifiers(source: Source, spec: TableSpec, kinds: Mapping[str, ColumnKind]) -> None:
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
    units = source.n_rows if spec.stay is None else _n_distinct(source, spec.stay)
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


MOST_KEPT = 1001
"""Distinct words that are kept while a column is looked at; more than can ever be levels."""


@dataclass(frozen=True)
class TextLook:
    """What was seen in a column of text."""

    n_rows: int
    words: frozenset[str]

    @property
    def is_yes_no(self) -> bool:
        """Whether every text says yes or no, or all are one of t and f."""
        said = {word.lower() for word in self.words}
        return bool(said) and (said <= {*NO_WORDS, *YES_WORDS} or said == {"t", "f"})


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
