"""Columns that a policy had better not see: identifiers, free text, what is known only later."""

from collections.abc import Sequence
from dataclasses import dataclass

from etips.checks import role_words
from etips.checks.column_facts import ColumnFacts
from etips.checks.role_words import SURE, likeness, names_identifier, parts_of
from etips.data.tables.layout import MOST_LEVELS
from etips.data.tables.table_spec import TableSpec

_COMMON = ("event", "issue", "cost", "response", "readmission", "readmitted", "relapse", "adverse")
_LEAST_BEFORE = 3  # columns before the treatment that make a table look like it is in order of time
_FEW_VALUES, _FEW_WORDS = 20, 10


@dataclass(frozen=True)
class Suspect:
    """A column, and what speaks against it as a feature."""

    column: str
    reason: str
    leave_out: bool = True
    later: bool = False


def find_suspects(
    facts: Sequence[ColumnFacts],
    free: Sequence[ColumnFacts],
    columns: TableSpec,
    *,
    one_row: bool,
) -> tuple[Suspect, ...]:
    """Suspects among the features, those to be left out first."""
    looked_at = [own for own in facts if own in free or own.name in columns.static]
    alone = [own for own in looked_at if own.name not in columns.categorical]
    found = {own.name: suspect for own in alone if (suspect := _alone(own))}
    if one_row:
        behind = _behind_treatment(facts, looked_at, columns, found)
        found = behind | {n: s for n, s in found.items() if s.leave_out or n not in behind}
    ordered = [found[own.name] for own in looked_at if own.name in found]
    return tuple(sorted(ordered, key=lambda own: not own.leave_out))


def _alone(own: ColumnFacts) -> Suspect | None:
    """What a column by itself gives rise to."""
    name, known = own.name, own.n_rows - own.n_missing
    outcome = max(likeness(name, role_words.LOSS), likeness(name, role_words.REWARD))
    joined = "".join(parts_of(name))
    within = any(word in joined for word in role_words.LATER_WITHIN)
    if outcome > 0 and own.shape != "other" and not likeness(name, _COMMON):
        return Suspect(name, "is named like an outcome, known only later", later=True)
    if within or likeness(name, role_words.LATER) >= SURE:
        return Suspect(name, "is named like something known only later", later=True)
    if role_words.FORM_STATUS.search(name.lower()):
        return Suspect(name, "is kept by REDCap itself")
    if likeness(name, role_words.PERSONAL) >= SURE and own.n_distinct > _FEW_WORDS:
        return Suspect(name, "is named like something that tells who a person is")
    if own.shape == "text" and own.n_distinct > max(_FEW_WORDS, 0.5 * known):
        return Suspect(name, "is an identifier or free text: hardly a value occurs twice")
    if own.shape == "text" and own.n_distinct > MOST_LEVELS:
        return Suspect(name, f"is text of more than {MOST_LEVELS} levels: --categorical keeps it")
    numbered = likeness(name, role_words.ROW_NUMBER) >= SURE
    named = any(names_identifier(name, w) for w in (role_words.PATIENT, role_words.STAY))
    if own.names_things and own.unique and own.n_rows > _FEW_VALUES and (numbered or named):
        return Suspect(name, "is an identifier: no value occurs twice")
    if own.names_things and (own.n_distinct > _FEW_VALUES or own.n_distinct == 1) and named:
        return Suspect(name, "is named like an identifier")
    if likeness(name, role_words.CODE) < 1 or own.shape != "number" or not own.whole:
        return None
    if own.n_distinct > MOST_LEVELS and role_words.CODE_END.search(joined):
        reason = f"holds codes of more than {MOST_LEVELS} levels (--categorical keeps them)"
        return Suspect(name, reason)
    if not own.zero_one and own.n_distinct > 2:
        reason = "holds numbers, but is named like codes: --categorical if it is"
        return Suspect(name, reason, leave_out=False)
    return None


def _behind_treatment(
    facts: Sequence[ColumnFacts],
    looked_at: Sequence[ColumnFacts],
    columns: TableSpec,
    found: dict[str, Suspect],
) -> dict[str, Suspect]:
    """What stands behind the treatment in a table that is written in the order of time.

    It is if features stand before the treatment and outcomes behind it.
    """
    place = {own.name: own.position for own in facts}
    treated = [place[name] for name in columns.treatment if name in place]
    outcome = place.get(columns.loss or columns.reward or "", -1)
    if not treated or outcome < max(treated):
        return {}
    before = [own for own in looked_at if own.position < min(treated) and own.name not in found]
    behind = [own.name for own in looked_at if own.position > max(treated)]
    if len(before) < _LEAST_BEFORE:
        return {}
    later = any(found[name].later for name in behind if name in found)
    reason = "stands behind the treatment in the table: known only later?"
    return {name: Suspect(name, reason, leave_out=later, later=True) for name in behind}
