"""Which column of a table plays which part, and what each feature column holds."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from fnmatch import fnmatchcase

import numpy as np
from pyarrow import types

from etips.data.recipe import ColumnKind
from etips.data.schema import MISSING_SUFFIX, Roles, Schema
from etips.data.tables.arrow_columns import (
    NO_WORDS,
    YES_WORDS,
    encode,
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

MOST_LEVELS = 50
"""Text of more levels is a name, a diagnosis in words or a remark, unless the user says not."""

_OF_NUMBERS = ("step", "loss", "propensity", "negative_control", "eligible")
_FEW_LEVELS = 10  # under this, words that occur once each may still be categories
_BORN = re.compile(r"birth|(^|_)dob($|_)|geburt|naissance|nascita|nacimiento", re.IGNORECASE)
_ADMITTED = re.compile(
    r"admi(t|ss)|(^|_)adm(_|date|time|$)|in_?time|arriv|random|inclusion|enrol|visit|index_?date"
    r"|aufnahme|entr[eé]e|ingreso",
    re.IGNORECASE,
)
_LIKE_AN_ID = re.compile(
    r"(^|[_\W])(id|mrn|hospnum|pid|uuid|guid|key|index|unnamed.*|row_?(no|num|number|id|names?)?|seqn)$"
    r"|^$|[a-z]ID$|(patient|subject|case|record|hosp\w*)_?(no|num|number|id|name)$"
    r"|_(code|cd|nr|concept_?id)$|^(zip|zipcode|postcode|plz|icd\w*|(site|cent(re|er)|ward)_?id)$",
    re.IGNORECASE,
)
_WORDS = {
    "number": "numbers",
    "category": "a category",
    "yes_no": "yes or no",
    "hours": "times",
    "years": "dates",
    "age": "dates",
    "duration": "lengths of time",
}


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
        spec = _spelt_out(source, spec)
    named = {role: column for role, column in spec.columns.items() if column is not None}
    if spec.action == spec.treatment and len(spec.action) == 1:
        named["action"] = spec.action[0]
    others = [name for name in spec.treatment if name != named.get("action")]
    with faults.noting():
        require_columns(source, [*named.values(), *others])
    if spec.like is not None:
        faults.raise_any()
        sequence = _columns_behind(source, spec.like, spec.like.sequence)
        static = _columns_behind(source, spec.like, spec.like.static)
    else:  # where columns are missing, what there is of features can still be judged
        named = {role: column for role, column in named.items() if column in source.columns}
        sequence = _chosen(source, spec, {*named.values(), *others})
        static = spec.static
    spelt = _spelt_roles(source, spec, named, faults)
    parts = Counter([*named.values(), *others, *static, *sequence])
    for name in [name for name, times in parts.items() if times > 1]:
        faults.note(SettingError(f"column {name}", "must play one part only"))
    beyond = bool(faults.noted)
    static = tuple(name for name in static if name in source.columns)
    kinds = recognise(source, spec, sequence, static, faults)
    if beyond or spec.like is not None:
        faults.raise_any()
    features = [name for name, own in kinds.items() if own.kind not in ("category", "yes_no")]
    dates = [own.at for own in kinds.values() if own.at is not None]
    text = [n for n in dict.fromkeys([*spelt, *features, *dates]) if is_text(source.columns[n])]
    times = [name for name, own in kinds.items() if own.kind in ("hours", "age")]
    return Layout(
        roles=_roles(named, {*sequence, *static, *others, *spec.drop}, spec.like),
        present=frozenset(named) | ({"action"} if spec.treatment else set()),
        sequence=tuple(name for name in sequence if name in kinds),
        static=tuple(name for name in static if name in kinds),
        kinds=kinds,
        treatment=spec.treatment,
        timed=tuple(name for name in times if not is_number(source.columns[name])),
        spelt=tuple(text),
    )


def _spelt_roles(
    source: Source, spec: TableSpec, named: Mapping[str, str], faults: Faults
) -> list[str]:
    """Columns of text that play a part and spell numbers or times; what is wrong is taken up.

    A stay may be any text, but the line below a table (Total) is none.
    """
    known = None if spec.like is None else spec.like.recipe
    labelled: set[str | None] = set()  # outcomes whose values are names, not numbers
    if spec.bad:
        labelled = {spec.columns["loss"]}
    elif spec.like is not None and known is not None and known.outcome.others:
        labelled = {spec.like.roles.loss}
    doses = [("dose", name) for name in spec.dose]
    spelt = []
    for role, column in [*named.items(), *doses]:
        numeric = role in (*_OF_NUMBERS, "dose")
        text = column in source.columns and is_text(source.columns[column])
        if column in labelled or not text or not (numeric or role == "stay"):
            continue
        form, fault = source.form(column)
        if numeric and form.kind != "text":
            spelt.append(column)
        footer = fault is not None and fault.fix.startswith(FOOTER)
        if fault is not None and role != "eligible" and (numeric or footer):
            faults.note(fault.without_options())
    return spelt


def _spelt_out(source: Source, spec: TableSpec) -> TableSpec:
    """The same with `R*` and the like spelt out, and refused where no column is called so."""
    faults, columns = Faults(), {}
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
        columns[argument] = tuple(names)
    faults.raise_any()
    return spec.model_copy(update=columns)


def _chosen(source: Source, spec: TableSpec, taken: set[str]) -> tuple[str, ...]:
    """The columns that are sequential features."""
    twice = sorted(set(spec.drop) & {*taken, *spec.static})
    if twice:
        raise SettingError(f"column {twice[0]}", "must play one part only", fix="See drop.")
    free = [name for name in source.columns if name not in {*taken, *spec.static, *spec.drop}]
    return tuple(name for name in free if not spec.features or name in spec.features)


def _roles(named: dict[str, str], features: set[str], like: Schema | None) -> Roles:
    """The roles that were named, and for those the table lacks a name that is not taken."""
    usual = Roles() if like is None else like.roles
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
            folded = {other.lower(): other for other in source.columns}
            close = get_close_matches(name.lower(), folded, n=3, cutoff=0.75)
            meant = ", ".join(folded[other] for other in close)
            remedy = f"Do you mean {meant}?" if meant else fix
            if name in source.index:
                remedy = "It is the index of the frame: pass frame.reset_index()."
            faults.note(DataError(_place(source, name), "is missing from the table", fix=remedy))
    faults.raise_any()


def _columns_behind(source: Source, like: Schema, features: Sequence[str]) -> tuple[str, ...]:
    """Columns of the table that `features` are made of: themselves, or what they derive from."""
    columns: dict[str, None] = {}
    elapsed = None if like.recipe is None else like.recipe.elapsed
    for feature in features:
        origin = feature.removesuffix(MISSING_SUFFIX)
        ours = feature.endswith(MISSING_SUFFIX) and origin in like.indicators
        there = feature in source.columns
        empty = there and ours and types.is_null(source.columns[feature])
        if there and not empty:
            columns[feature] = None
        elif feature != elapsed:
            category = next((c for c in like.categories if feature.startswith(f"{c}=")), None)
            columns[origin if category is None else category] = None
    strict = like.recipe is not None and like.recipe.missing == "refuse"
    fix = "" if strict else "The policy was fitted on it. Add it; its cells may be empty."
    require_columns(source, list(columns), fix=fix)
    return tuple(columns)


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
        _remark_on_times(kinds)
        _remark_on_identifiers(source, spec, kinds)
    return kinds


def _kind(source: Source, name: str, spec: TableSpec, still: bool) -> ColumnKind:
    """The kind of a column that was not read before; `still` if it has one time a stay."""
    kind = source.columns[name]
    if is_categorical(kind) or (name in spec.categorical and not types.is_nested(kind)):
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
    words, n_rows = _words_of(source, name)
    if n_rows == 0:
        return ColumnKind()
    spelt = {word.lower() for word in words}
    if spelt <= {*NO_WORDS, *YES_WORDS} or spelt == {"t", "f"}:
        return ColumnKind("yes_no", yes_no_levels(words))
    # About as many words as rows, or as stays, are names rather than levels.
    names = len(words) == n_rows and len(words) >= _FEW_LEVELS // 2
    if _FEW_LEVELS < len(words) <= MOST_LEVELS:
        names |= len(words) >= 0.9 * min(_n_stays(source, spec), n_rows)
    if len(words) > MOST_LEVELS or names:
        rule = "is text that looks like an identifier or free text"
        keep = f'--categorical {as_option(name)} (categorical=["{name}"])'
        fix = f"Leave it out: {_drop(name)}; or keep it as a category: {keep}."
        raise DataError(_place(source, name), rule, fix=fix)
    return ColumnKind("category")


def _words_of(source: Source, name: str) -> tuple[set[str], int]:
    """The different texts of a column, and how many rows have one."""
    values, code = encode(whole_column(source, name))
    text = plain_text(_place(source, name), values)
    known = np.append(text.is_valid().to_numpy(zero_copy_only=False), False)
    return set(text.drop_null().to_pylist()), int(known[code].sum())


def _of_times(source: Source, name: str, spec: TableSpec, still: bool) -> ColumnKind:
    """Hours or years; of a date of birth the age, where another time says at what day."""

    def holds_times(other: str) -> bool:
        kind = source.columns[other]
        return is_time(kind) or (is_text(kind) and source.form(other)[0].kind == "date")

    if _BORN.search(name) and spec.step is not None and holds_times(spec.step):
        return ColumnKind("age")
    if _BORN.search(name) and spec.step is None:
        columns = [other for other in source.columns if other != name and _ADMITTED.search(other)]
        at = next((other for other in columns if holds_times(other)), None)
        if at is not None:
            return ColumnKind("age", at=at)
    return ColumnKind("years" if still else "hours")


def _known(source: Source, name: str, like: Schema) -> ColumnKind:
    """The kind that a column had in the data of `like`, if the table's own fits it."""
    kinds: Mapping[str, ColumnKind] = {} if like.recipe is None else like.recipe.kinds
    levels, wanted = like.categories.get(name), kinds.get(name, ColumnKind())
    if levels is not None:
        return ColumnKind("category", levels)
    kind = source.columns[name]
    if wanted.at is not None and wanted.at not in source.columns and not is_number(kind):
        raise DataError(_place(source, wanted.at), "is missing from the table")
    if is_number(kind) or (wanted.kind == "yes_no" and is_text(kind)):
        return wanted
    if is_text(kind):
        form, fault = source.form(name)
        if fault is not None:
            raise fault.without_options()  # what a policy was fitted on cannot be left out
        if form.kind == "text" and _words_of(source, name)[1] == 0:
            return ColumnKind()
        kind = form.type
    fits: tuple[str, ...] = ()
    if is_number(kind):
        fits = ("number", "hours", "years", "age", "duration")
    elif is_time(kind):
        fits = ("hours", "years", "age")
    elif types.is_duration(kind) or types.is_time(kind):
        fits = ("duration",)
    if wanted.kind in fits:
        return wanted
    rule = f"must be read as {_WORDS[wanted.kind]}, as in the data the policy was fitted on"
    raise DataError(_place(source, name), rule)


def _remark_on_times(kinds: Mapping[str, ColumnKind]) -> None:
    for kind, words in (
        ("hours", "hours since the stay's first row"),
        ("years", "years since 2000"),
    ):
        names = [name for name, own in kinds.items() if own.kind == kind]
        if names:
            note(f"{_columns(names)} read as {words}")
    for name, own in kinds.items():
        if own.kind == "age":
            at = own.at or "the first row of the stay"
            note(f"column {name} is read as age at {at}, in years")


def _remark_on_identifiers(
    source: Source, spec: TableSpec, kinds: Mapping[str, ColumnKind]
) -> None:
    """Name columns of numbers that are called and look like identifiers or codes."""
    whole = [name for name, own in kinds.items() if own.kind == "number"]
    whole = [name for name in whole if types.is_integer(source.columns[name])]
    named = [name for name in whole if _LIKE_AN_ID.search(name)]
    if not named:
        return
    n_stays = _n_stays(source, spec)
    values = {name: _n_distinct(source, name) for name in named}
    alike = [name for name in named if values[name] >= 0.9 * n_stays]
    if alike:
        ids = as_option(*alike)
        note(f"{_columns(alike)} used as a feature but may be an identifier; --drop {ids} omits it")
    codes = [name for name in named if name not in alike and values[name] > MOST_LEVELS]
    if codes:
        what = f"read as numbers but called like a code of more than {MOST_LEVELS} values"
        names = as_option(*codes)
        note(f"{_columns(codes)} {what}: does its size mean anything? --drop {names} omits it")


def _n_stays(source: Source, spec: TableSpec) -> int:
    """How many stays there are; of a column that is missing, which is refused elsewhere, rows."""
    known = spec.stay in source.columns
    return _n_distinct(source, spec.stay) if spec.stay is not None and known else source.n_rows


def _n_distinct(source: Source, name: str) -> int:
    column = whole_column(source, name)
    if types.is_null(column.type) or types.is_nested(column.type):
        return len(column)  # refused where it is read
    return len(encode(column)[0].drop_null())


def _columns(names: Sequence[str]) -> str:
    return f"column {names[0]} is" if len(names) == 1 else f"columns {', '.join(names)} are"


def _place(source: Source, name: str) -> str:
    return f"{source.name}, column {name}"


def _drop(name: str) -> str:
    return f'--drop {as_option(name)} (drop=["{name}"])'
