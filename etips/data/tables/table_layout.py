"""Which column of a long table plays which part."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase

from pyarrow.types import is_null

from etips.data.intake.recipe import ColumnKind
from etips.data.intake.recognition import recognise
from etips.data.intake.request import Request
from etips.data.schema import MISSING_SUFFIX, Roles, Schema
from etips.data.tables.arrow_columns import is_number, is_text
from etips.data.tables.sources import Source
from etips.data.tables.text_cells import FOOTER
from etips.errors import DataError, Faults, SettingError

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


def lay_out(source: Source, asked: Request, faults: Faults | None = None) -> Layout:
    """Give every column its part and its kind, or refuse by name what has none.

    Args:
        source: The table.
        asked: What the caller said.
        faults: Takes up what is wrong with features, which are then left out of the layout, so that
            the rest of the table can be looked at.
    """
    told = faults or Faults()
    with told.noting():
        asked = expand(source, asked)
    named = {role: column for role, column in asked.columns.items() if column is not None}
    if asked.action == asked.treatment and len(asked.action) == 1:
        named["action"] = asked.action[0]
    others = [name for name in asked.treatment if name != named.get("action")]
    with told.noting():
        require_columns(source, [*named.values(), *others])
    if asked.like is not None:
        told.raise_any()
    elif told.noted:  # what there is of features can still be judged
        named = {role: column for role, column in named.items() if column in source.columns}
    if asked.like is None:
        sequence = _chosen(source, asked, {*named.values(), *others})
        static = asked.static
    else:
        sequence = _wanted(source, asked.like, asked.like.sequence)
        static = _wanted(source, asked.like, asked.like.static)
    numeric = _measured(asked, named)
    _note_roles(source, numeric, told)
    parts = Counter([*named.values(), *others, *static, *sequence])
    for name in [name for name, times in parts.items() if times > 1]:
        told.note(SettingError(f"column {name}", "must play one part only"))
    beyond = bool(told.noted)
    static = tuple(name for name in static if name in source.columns)
    kinds = recognise(source, asked, sequence, static, faults=told)
    if beyond or faults is None or asked.like is not None:
        told.raise_any()
    usual = Roles() if asked.like is None else asked.like.roles
    return Layout(
        roles=_roles(named, {*sequence, *static, *others, *asked.drop}, usual),
        present=frozenset(named) | ({"action"} if asked.treatment else set()),
        sequence=tuple(name for name in sequence if name in kinds),
        static=tuple(name for name in static if name in kinds),
        kinds=kinds,
        treatment=asked.treatment,
        timed=_timed(source, kinds),
        spelt=_spelt(source, numeric, kinds),
    )


def _measured(asked: Request, named: Mapping[str, str]) -> dict[str, str]:
    """Columns of roles and of doses, less an outcome whose values are names, not numbers."""
    labelled: set[str | None] = set()
    if asked.bad:
        labelled = {asked.columns["loss"]}
    elif asked.like is not None and asked.like.recipe and asked.like.recipe.outcome.others:
        labelled = {asked.like.roles.loss}
    amounts = {f"dose {at}": name for at, name in enumerate(asked.dose)}
    return {r: name for r, name in {**named, **amounts}.items() if name not in labelled}


def _timed(source: Source, kinds: Mapping[str, ColumnKind]) -> tuple[str, ...]:
    """Features of times whose cells hold no hours, and no ages, yet."""
    hours = [name for name, own in kinds.items() if own.kind in ("hours", "age")]
    return tuple(name for name in hours if not is_number(source.columns[name]))


def _note_roles(source: Source, named: Mapping[str, str], faults: Faults) -> None:
    """Take up what is wrong with columns of text that must be numbers or times.

    A stay may be any text, but the line below a table (Total) is none.
    """
    for role, column in named.items():
        if column not in source.columns:
            continue
        if _is_numeric(role) and is_text(source.columns[column]) and role != "eligible":
            fault = source.form(column)[1]
            if fault is not None:
                faults.note(fault.without_options())
        elif role == "stay" and is_text(source.columns[column]):
            fault = source.form(column)[1]
            if fault is not None and fault.fix.startswith(FOOTER):
                faults.note(fault.without_options())


def _is_numeric(role: str) -> bool:
    return role in _OF_NUMBERS or role.startswith("dose ")


def _spelt(
    source: Source, named: Mapping[str, str], kinds: Mapping[str, ColumnKind]
) -> tuple[str, ...]:
    """Columns of text that must be numbers or dates; of the roles, those that spell them."""
    features = [name for name, own in kinds.items() if own.kind not in ("category", "yes_no")]
    roles = [
        column
        for role, column in named.items()
        if _is_numeric(role)
        and column in source.columns
        and is_text(source.columns[column])
        and source.form(column)[0].kind != "text"
    ]
    dates = [own.at for own in kinds.values() if own.at is not None]
    named_once = dict.fromkeys([*roles, *features, *dates])
    return tuple(name for name in named_once if is_text(source.columns[name]))


def expand(source: Source, asked: Request) -> Request:
    """The same with `R*` and the like spelt out, and refused where no column is called so."""
    faults, found = Faults(), {}
    for argument in ("static", "categorical", "features", "drop"):
        names: dict[str, None] = {}
        for pattern in getattr(asked, argument):
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
    return replace(asked, **found)  # type: ignore[arg-type]


def _chosen(source: Source, asked: Request, taken: set[str]) -> tuple[str, ...]:
    """The columns that are sequential features."""
    twice = sorted(set(asked.drop) & {*taken, *asked.static})
    if twice:
        raise SettingError(f"column {twice[0]}", "must play one part only", fix="See drop.")
    free = [name for name in source.columns if name not in {*taken, *asked.static, *asked.drop}]
    if not asked.features:
        return tuple(free)
    wanted = set(asked.features)
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
    """Refuse columns that the table does not have, all of them at once.

    Args:
        source: The table.
        names: The columns.
        fix: Remedy where no column is called alike.
    """
    faults = Faults()
    for name in dict.fromkeys(names):
        if name not in source.columns:
            place = f"{source.name}, column {name}"
            remedy = _alike(source, name) or fix
            if name in source.index:
                remedy = "It is the index of the frame: pass frame.reset_index()."
            faults.note(DataError(place, "is missing from the table", fix=remedy))
    faults.raise_any()


def _alike(source: Source, name: str) -> str:
    """Columns that may have been meant; a name is part of the schema and may be shown."""
    folded = {other.lower(): other for other in source.columns}
    close = get_close_matches(name.lower(), folded, n=3, cutoff=0.75)
    meant = ", ".join(folded[other] for other in close)
    return f"Do you mean {meant}?" if meant else ""


def _wanted(source: Source, like: Schema, features: Sequence[str]) -> tuple[str, ...]:
    """Columns of the table that `features` are made of: themselves, or what they derive from."""
    columns: dict[str, None] = {}
    elapsed = None if like.recipe is None else like.recipe.elapsed
    for feature in features:
        if feature in source.columns and not _is_empty_mark(source, like, feature):
            columns[feature] = None
        elif feature != elapsed:
            category = next((c for c in like.categories if feature.startswith(f"{c}=")), None)
            origin = feature.removesuffix(MISSING_SUFFIX)
            columns[origin if category is None else category] = None
    strict = like.recipe is not None and like.recipe.missing == "refuse"
    fix = "" if strict else "The policy was fitted on it. Add it; its cells may be empty."
    require_columns(source, list(columns), fix=fix)
    return tuple(columns)


def _is_empty_mark(source: Source, like: Schema, feature: str) -> bool:
    """Whether a column is called like a mark of ours but holds nothing, so that it is none."""
    ours = feature.removesuffix(MISSING_SUFFIX) in like.indicators
    return ours and feature.endswith(MISSING_SUFFIX) and is_null(source.columns[feature])
