"""Columns that a policy had better not see: identifiers, free text, what is only known later."""

from collections.abc import Sequence
from dataclasses import dataclass

from etips.checks import role_words
from etips.checks.column_facts import MOST_LEVELS, ColumnFacts
from etips.checks.role_words import SURE, likeness, names_identifier
from etips.data.tables.columns import TableColumns

_COMMON = ("event", "issue", "cost", "response", "readmission", "readmitted", "relapse", "adverse")
LEAST_BEFORE = 3  # columns before the treatment that make a table look like it is in order of time
FEW_VALUES, FEW_WORDS = 20, 10


@dataclass(frozen=True)
class Suspect:
    """A column, and what speaks against it as a feature.

    Args:
        column: Its name.
        reason: What.
        leave_out: Whether it is left out unless somebody says otherwise.
        later: Whether that is since it is known only later.
    """

    column: str
    reason: str
    leave_out: bool = True
    later: bool = False


def find_suspects(
    facts: Sequence[ColumnFacts],
    free: Sequence[ColumnFacts],
    columns: TableColumns,
    *,
    one_row: bool,
) -> tuple[Suspect, ...]:
    """Suspects among the features, those to be left out first.

    Args:
        facts: Of all columns.
        free: Those without a part; static features are looked at too.
        columns: Who plays which part.
        one_row: Whether a stay has one row.
    """
    fixed = set(columns.static or ())
    looked_at = [own for own in facts if own in free or own.name in fixed]
    codes = set(columns.categorical or ())
    found = {own.name: s for own in looked_at if (s := _alone(own)) and own.name not in codes}
    if one_row:
        behind = _in_order(facts, looked_at, columns, found)
        found = behind | {n: s for n, s in found.items() if s.leave_out or n not in behind}
    ordered = [found[own.name] for own in looked_at if own.name in found]
    return tuple(sorted(ordered, key=lambda own: not own.leave_out))


def _alone(own: ColumnFacts) -> Suspect | None:
    """What a column by itself gives rise to."""
    outcome = max(likeness(own.name, role_words.LOSS), likeness(own.name, role_words.REWARD))
    if outcome > 0 and own.shape != "other" and not _is_common(own.name):
        return Suspect(own.name, "is named like an outcome, known only later", later=True)
    if is_later(own.name):
        return Suspect(own.name, "is named like something known only later", later=True)
    known = own.n_rows - own.n_missing
    if role_words.FORM_STATUS.search(own.name.lower()):
        return Suspect(own.name, "is kept by REDCap itself")
    if likeness(own.name, role_words.PERSONAL) >= SURE and own.n_distinct > FEW_WORDS:
        return Suspect(own.name, "is named like something that tells who a person is")
    if own.shape == "text" and own.n_distinct > max(FEW_WORDS, 0.5 * known):
        return Suspect(own.name, "is an identifier or free text: hardly a value occurs twice")
    if own.shape == "text" and own.n_distinct > MOST_LEVELS:
        reason = f"is text of more than {MOST_LEVELS} levels: --categorical keeps it"
        return Suspect(own.name, reason)
    numbered = likeness(own.name, role_words.ROW_NUMBER) >= SURE
    named = any(names_identifier(own.name, w) for w in (role_words.PATIENT, role_words.STAY))
    if own.names_things and own.unique and own.n_rows > FEW_VALUES and (numbered or named):
        return Suspect(own.name, "is an identifier: no value occurs twice")
    if own.names_things and (own.n_distinct > FEW_VALUES or own.n_distinct == 1) and named:
        return Suspect(own.name, "is named like an identifier")
    code = likeness(own.name, role_words.CODE) >= 1 and own.shape == "number"
    if code and own.whole and own.n_distinct > MOST_LEVELS and _ends_like_code(own.name):
        reason = f"holds codes of more than {MOST_LEVELS} levels (--categorical keeps them)"
        return Suspect(own.name, reason)
    if code and own.whole and not own.zero_one and own.n_distinct > 2:
        reason = "holds numbers, but is named like codes: --categorical if it is"
        return Suspect(own.name, reason, leave_out=False)
    return None


def is_later(name: str) -> bool:
    """Whether a column is named like something known only once a stay is over."""
    joined = "".join(role_words.parts_of(name))
    within = any(word in joined for word in role_words.LATER_WITHIN)
    return within or likeness(name, role_words.LATER) >= SURE


def _ends_like_code(name: str) -> bool:
    return role_words.CODE_END.search("".join(role_words.parts_of(name))) is not None


def _is_common(name: str) -> bool:
    """Words of outcomes that many other things are called by as well."""
    return likeness(name, _COMMON) > 0


def _in_order(
    facts: Sequence[ColumnFacts],
    looked_at: Sequence[ColumnFacts],
    columns: TableColumns,
    found: dict[str, Suspect],
) -> dict[str, Suspect]:
    """What stands behind the treatment in a table that is written in the order of time.

    It is if features stand before the treatment and outcomes behind it.
    """
    place = {own.name: own.position for own in facts}
    treated = [place[name] for name in columns.action or columns.dose or () if name in place]
    if not treated:
        return {}
    last = max(treated)
    before = [own for own in looked_at if own.position < min(treated) and own.name not in found]
    behind = [own for own in looked_at if own.position > last]
    outcome = place.get(columns.loss or columns.reward or "", -1)
    if len(before) < LEAST_BEFORE or outcome < last or not behind:
        return {}
    later = any(found[own.name].later for own in behind if own.name in found)
    reason = "stands behind the treatment in the table: known only later?"
    return {own.name: Suspect(own.name, reason, leave_out=later, later=True) for own in behind}
