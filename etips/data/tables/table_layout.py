"""Which column of a long table plays which part."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches

from etips.data.intake.request import Request
from etips.data.schema import MISSING_SUFFIX, Roles, Schema
from etips.data.tables.arrow_columns import is_categorical, is_number, require_number
from etips.data.tables.sources import Source, whole_column
from etips.errors import DataError, Faults, SettingError


@dataclass(frozen=True)
class Layout:
    """The parts columns play; names are those of the table.

    Args:
        roles: Name of each role's column, present or not.
        present: Roles that the table has, of `Roles`' fields.
        sequence: Columns read as sequential features.
        static: Columns read as static features.
        categorical: Those of the two that become one column a level.
        treatment: Columns that say what was done: of the action, or of doses.
    """

    roles: Roles
    present: frozenset[str]
    sequence: tuple[str, ...]
    static: tuple[str, ...]
    categorical: frozenset[str]
    treatment: tuple[str, ...] = ()

    def numeric(self, columns: Sequence[str]) -> list[str]:
        """Those of `columns` that are read as numbers."""
        return [name for name in columns if name not in self.categorical]

    def role_columns(self) -> dict[str, str]:
        """Column of each role that is present, the action apart."""
        return {role: getattr(self.roles, role) for role in sorted(self.present - {"action"})}

    def other_columns(self) -> list[str]:
        """Columns that are read whole: of roles, of the treatment, and categories."""
        return [*self.role_columns().values(), *self.treatment, *sorted(self.categorical)]


def lay_out(source: Source, asked: Request) -> Layout:
    """Give every column its part, or refuse by name; `asked.like` reads only what it wants."""
    static, categorical, like = asked.static, asked.categorical, asked.like
    named = {role: column for role, column in asked.columns.items() if column is not None}
    if asked.action == asked.treatment and len(asked.action) == 1:
        named["action"] = asked.action[0]
    others = [name for name in asked.treatment if name != named.get("action")]
    _require_columns(source, [*named.values(), *others, *static, *categorical])
    if like is None:
        taken = {*named.values(), *others, *static}
        sequence = tuple(name for name in source.columns if name not in taken)
        fixed = tuple(static)
    else:
        sequence = _wanted(source, like, like.sequence)
        fixed = _wanted(source, like, like.static)
    parts = [*named.values(), *others, *fixed, *sequence]
    for name in parts if len(set(parts)) != len(parts) else ():
        if parts.count(name) > 1:
            raise SettingError(f"column {name}", "must play one part only")
    by_type = {name for name in (*sequence, *fixed) if is_categorical(source.columns[name])}
    known = set(like.categories) if like is not None else set()
    chosen = frozenset(by_type | (set(categorical) | known) & {*sequence, *fixed})
    faults = Faults()
    for name in (*sequence, *fixed):
        if name in chosen or is_number(source.columns[name]):
            continue
        with faults.noting():
            if name in source.faults:
                raise source.faults[name]
            fix = "Drop it, turn it into numbers, or name it in categorical."
            require_number(f"{source.name}, column {name}", whole_column(source, name), fix=fix)
    faults.raise_any()
    roles = _roles(named, {*sequence, *fixed, *others}, Roles() if like is None else like.roles)
    present = frozenset(named) | ({"action"} if asked.treatment else set())
    return Layout(roles, present, sequence, fixed, chosen, asked.treatment)


def _roles(named: dict[str, str], features: set[str], usual: Roles) -> Roles:
    """The roles that were named, and for those the table lacks a name that is not taken."""
    roles, taken = dict(named), features | set(named.values())
    for field in fields(Roles):
        if field.name not in named:
            name = getattr(usual, field.name)
            while name in taken:
                name += "_"
            roles[field.name] = name
            taken.add(name)
    return Roles(**roles)


def _require_columns(source: Source, names: Sequence[str]) -> None:
    faults = Faults()
    for name in dict.fromkeys(names):
        if name not in source.columns:
            place = f"{source.name}, column {name}"
            faults.note(DataError(place, "is missing from the table", fix=_alike(source, name)))
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
    for feature in features:
        if feature in source.columns:
            columns[feature] = None
            continue
        category = next((c for c in like.categories if feature.startswith(f"{c}=")), None)
        origin = feature.removesuffix(MISSING_SUFFIX)
        column = origin if category is None else category
        _require_columns(source, [column])
        columns[column] = None
    return tuple(columns)
