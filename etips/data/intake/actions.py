"""What was done and what came of it: treatments of a table as actions 0..K-1, and their losses."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from unicodedata import normalize

import numpy as np

from etips.data.decisions import NO_ACTION, Floats, Ints
from etips.data.intake.dose_classes import DoseClasses, action_of, dose_names, require_dose_values
from etips.data.intake.labelled_columns import AMOUNT, FALSE, TRUE, LabelledColumn, label_column
from etips.data.intake.outcomes import read_outcome
from etips.data.recipe import ActionReading, Outcome, Recipe
from etips.data.schema import MOST_ACTIONS, Schema
from etips.data.tables.arrow_columns import numbers, require_number
from etips.data.tables.sorting import SortedTable
from etips.data.tables.table_spec import TableSpec
from etips.disclosure import LEAST_PEOPLE
from etips.errors import DataError, SettingError, require
from etips.notes import note

MOST_LABELS = 200
"""More treatments than this cannot be learned from a log, and are an amount or an identifier."""

_MOST_FRACTIONS = 20  # more numbers that are not whole are an amount
_LEAST_EACH = 5  # rows a label, where there are many: fewer and it is an amount or an identifier
_LARGEST_LOSS = 1e30  # networks learn in float32, which ends at 3e38
_SHOWN = 8  # labels in a line
_OTHER_SPELLINGS = {"0": FALSE, "1": TRUE, "no": FALSE, "yes": TRUE, "n": FALSE, "y": TRUE}
_NO_DOSE = "Treatments that are no amounts go into --action (action=...)."


@dataclass(frozen=True, eq=False)
class LogColumns:
    """Actions and losses of every step, what the actions are called, and how they were read."""

    action: Ints
    n_actions: int
    names: tuple[str, ...] = ()
    reading: ActionReading | None = None
    doses: tuple[DoseClasses, ...] = ()
    loss: Floats = field(default_factory=lambda: np.zeros(0))
    outcome: Outcome = field(default_factory=Outcome)


def read_log(table: SortedTable, spec: TableSpec) -> LogColumns:
    """Read the columns of the action (`spec.treatment`) and of the outcome."""
    if spec.dose:
        found = _of_doses(table, spec)
    else:
        columns = [label_column(table.place(n), n, table.cells.column(n)) for n in spec.action]
        if spec.like is None:
            found = find_actions(columns, n_actions=spec.n_actions, actions=spec.actions)
        else:
            found = _as_before(columns, spec.like)
    action = table.in_order(found.action)
    if not (action != NO_ACTION).any():
        raise DataError(table.place(", ".join(spec.treatment)), "must hold at least one action")
    loss, outcome = _losses(table, spec, action)
    return replace(found, action=action, loss=loss, outcome=outcome)


def find_actions(
    columns: Sequence[LabelledColumn], *, n_actions: int | None, actions: tuple[str, ...]
) -> LogColumns:
    """Number the treatments of a log."""
    for column in columns:
        if not column.labels:
            raise DataError(column.where, "must hold at least one action")
        _remark_on_variants(column)
    if len(columns) > 1:
        return _combinations(columns, n_actions, actions)
    only = columns[0]
    # A hole in 0..K-1 that has a name is an action that was never taken.
    numbers_of = [] if only.numbers is None or not only.is_whole else only.numbers.tolist()
    fits = bool(numbers_of) and all(0 <= number < len(actions) for number in numbers_of)
    whole = n_actions or (len(actions) if fits else None)
    if only.numbers is not None and not only.boolean and (whole is not None or only.is_range):
        action, k = _range_actions(only, whole)
        return LogColumns(action, k, actions)
    _require_few(only)
    order = only.labels
    if set(only.labels) <= set(actions):
        order = actions
    elif set(only.labels) & set(actions):
        rule = "must be all labels of the table, in any order, or new names for all of them"
        known = _listed([(label,) for label in only.labels])
        raise SettingError("actions", rule, fix=f"The table has {known}.")
    if n_actions is not None and len(order) != n_actions:
        rule = f"must be the number of actions, which is {len(order)} here"
        raise SettingError("n_actions", rule, fix="Leave it out, or name all in actions.")
    _remark_on_codes(only)
    return _labelled(columns, [(label,) for label in order], actions)


def _combinations(
    columns: Sequence[LabelledColumn], n_actions: int | None, actions: tuple[str, ...]
) -> LogColumns:
    """Every combination that occurs, in the order of the columns' labels."""
    for column in columns:
        _require_few(column)
    distinct, _ = _distinct(columns)
    known = distinct[(distinct != NO_ACTION).all(axis=1)]
    where = ", ".join(column.name for column in columns)
    if not len(known):
        raise DataError(where, "must hold at least one row in which none is missing")
    if len(known) > MOST_LABELS:
        rule = f"must make at most {MOST_LABELS} combinations"
        raise DataError(where, rule, fix="Name fewer columns in action (--action).")
    if n_actions is not None and n_actions != len(known):
        rule = f"must be the number of combinations, which is {len(known)} here"
        raise SettingError("n_actions", rule, fix="Leave it out.")
    labels = [
        tuple(column.labels[code] for column, code in zip(columns, row, strict=True))
        for row in known
    ]
    return _labelled(columns, labels, actions)


def _labelled(
    columns: Sequence[LabelledColumn], labels: Sequence[tuple[str, ...]], actions: tuple[str, ...]
) -> LogColumns:
    def called(column: LabelledColumn, label: str) -> str:
        if column.boolean:
            return column.name if label == TRUE else f"no {column.name}"
        alone = len(columns) == 1 or column.numbers is None
        return label if alone else f"{column.name} {label}"  # a code among others: of what

    words = [[called(c, label) for c, label in zip(columns, own, strict=True)] for own in labels]
    names = actions or tuple(", ".join(own) for own in words)
    if not actions and len(set(names)) < len(names):  # labels hold commas of their own
        names = tuple(" + ".join(own) for own in words)
    if len(names) != len(labels):
        rule = f"must name all {len(labels)} actions or none"
        raise SettingError("actions", rule, fix="They are named in sorted order of the labels.")
    action = _numbers_of(columns, [column.labels for column in columns], labels)
    reading = ActionReading(tuple(column.name for column in columns), tuple(labels))
    return LogColumns(action, len(labels), names, reading)


def _as_before(columns: Sequence[LabelledColumn], like: Schema) -> LogColumns:
    """Actions by the labels of the log that a policy was fitted on; others are refused."""
    known, names, k = like.recipe or Recipe(), like.actions, like.n_actions
    reading = known.action
    if reading is not None and len(columns) == len(reading.columns):
        labels: Sequence[tuple[str, ...]] = reading.labels
    elif len(columns) > 1:
        raise SettingError("action", "must be one column, as in the data the policy was fitted on")
    elif reading is not None or known.doses:  # a table that calls them by their names
        labels = [(name,) for name in names]
    else:
        return LogColumns(_range_actions(columns[0], k)[0], k, names)
    own = [
        _translated(column, sorted({label[place] for label in labels}))
        for place, column in enumerate(columns)
    ]
    return LogColumns(_numbers_of(columns, own, labels), k, names, reading)


def _range_actions(column: LabelledColumn, n_actions: int | None) -> tuple[Ints, int]:
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


def _numbers_of(
    columns: Sequence[LabelledColumn],
    spelt: Sequence[Sequence[str | None]],
    labels: Sequence[tuple[str, ...]],
) -> Ints:
    """Action of each row: -1 where a label is missing; what is no action is refused.

    Args:
        columns: Of the treatment.
        spelt: The known label that each of their labels spells, if any.
        labels: Of each action.
    """
    number: dict[tuple[str | None, ...], int] = {own: at for at, own in enumerate(labels)}
    distinct, inverse = _distinct(columns)
    actions = np.full(len(distinct), -2, np.int64)
    for place, row in enumerate(distinct):
        if (row == NO_ACTION).any():
            actions[place] = NO_ACTION
        else:
            own = tuple(known[code] for known, code in zip(spelt, row, strict=True))
            actions[place] = number.get(own, -2)
    taken = actions[inverse]
    fix = f"It knows {_listed(labels)}. Leave those rows out, or give them one of its names."
    rule = "must be one of the actions the policy was fitted on"
    where = columns[0].where
    if len(columns) > 1:
        where = f"{where.rpartition(', ')[0]}, columns " + ", ".join(c.name for c in columns)
    require(where, rule, taken != -2, fix=fix)
    return taken


def _distinct(columns: Sequence[LabelledColumn]) -> tuple[Ints, Ints]:
    """The combinations of codes that occur, in order, and which of them each row has."""
    sizes = [len(column.labels) + 1 for column in columns]
    if prod(sizes) >= 2**62:
        fix = "Name fewer columns in action (--action)."
        raise DataError(", ".join(own.name for own in columns), "are too many to combine", fix=fix)
    key = np.ravel_multi_index([column.code + 1 for column in columns], sizes)
    keys, inverse = np.unique(key, return_inverse=True)
    codes = np.stack(np.unravel_index(keys, sizes), axis=1) - 1
    return codes.astype(np.int64), inverse


def _translated(column: LabelledColumn, known: Sequence[str]) -> list[str | None]:
    """For each label of a column the known one that it spells; None if it spells none."""
    folded: dict[str, list[str]] = {}
    for label in known:
        folded.setdefault(label.casefold(), []).append(label)
    found: list[str | None] = []
    for label in column.labels:
        alike = folded.get(label.casefold(), [])
        if set(known) <= {FALSE, TRUE} and not alike:
            alike = folded.get(_OTHER_SPELLINGS.get(label.casefold(), ""), [])
        found.append(label if label in known else alike[0] if len(alike) == 1 else None)
    return found


def _listed(labels: Sequence[tuple[str, ...]]) -> str:
    """The actions of a log, for a refusal: the first of them."""
    shown = ["/".join(own)[:40] for own in labels[:_SHOWN]]
    return ", ".join(shown) + (", ..." if len(labels) > len(shown) else "")


def _require_few(column: LabelledColumn) -> None:
    """Refuse more labels than there can be treatments."""
    n, numeric = len(column.labels), column.numbers is not None
    most = _MOST_FRACTIONS
    if column.is_whole or not numeric:
        most = min(MOST_LABELS, max(most, int(column.counts.sum()) // _LEAST_EACH))
    if numeric and n > _MOST_FRACTIONS and (column.counts < LEAST_PEOPLE).mean() > 0.5:
        most = _MOST_FRACTIONS  # most occur in few rows, as those of an amount do
    if n > most:
        what = "numbers" if numeric else "texts"
        fix = AMOUNT if numeric else "Group them first. Is it the treatment?"
        rule = f"must hold at most {most} different treatments, holds {n:,} different {what}"
        raise DataError(column.where, rule, fix=fix)


def _remark_on_codes(column: LabelledColumn) -> None:
    if column.numbers is None or column.boolean:
        return
    labels = column.labels
    shown = ", ".join(labels[:_SHOWN]) + (", ..." if len(labels) > _SHOWN else "")
    if len(labels) == 1:
        note(f"{column.where}: the code {shown} is the only action")
        return
    hint = f" {AMOUNT}" if len(labels) > _MOST_FRACTIONS else ""
    note(
        f"{column.where}: the codes {shown} are labels of {len(labels)} actions, not a "
        f"range of numbers (--n-actions makes them one).{hint}"
    )


def _remark_on_variants(column: LabelledColumn) -> None:
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


def _of_doses(table: SortedTable, spec: TableSpec) -> LogColumns:
    """Actions that are classes of one or two doses, the first the slow index."""
    before = None if spec.like is None or spec.like.recipe is None else spec.like.recipe.doses
    if before is not None and len(before) != len(spec.dose):
        raise SettingError("dose", "must be as in the data the policy was fitted on")
    people = np.repeat(np.arange(len(table.stays)), np.diff(table.offsets))
    if (group := table.role("group")) is not None:
        people = table.levels(group)[1]
    doses, classes = [], []
    for place, name in enumerate(spec.dose):
        where, column = table.place(name), table.cells.column(name)
        require_number(where, column, fix=_NO_DOSE)
        dose = numbers(where, column)
        require_dose_values(where, dose, some=before is None)
        if before is None:
            fitted = DoseClasses.fit(name, table.in_order(dose), bins=spec.bins, people=people)
            if fitted.n_classes < spec.bins:
                fewer = f"{fitted.n_classes} classes, not {spec.bins}: too many doses are alike"
                note(f"{where}: doses make {fewer} for more.")
            if not fitted.none:
                gaps = " Empty cells are no decisions: write 0 where none was given."
                gaps = gaps if np.isnan(dose).any() else ""
                note(f"{where}: no dose is 0, so there is no class of none.{gaps}")
        else:
            fitted = before[place]
        doses.append(fitted)
        classes.append(fitted.apply(where, dose))
    counts = [own.n_classes for own in doses]
    if spec.n_actions is not None and spec.n_actions != prod(counts):
        rule = f"must be the number of classes, which is {prod(counts)} here"
        raise SettingError("n_actions", rule, fix="Leave it out.")
    names = spec.actions or dose_names(doses)
    return LogColumns(action_of(classes, counts), prod(counts), names, doses=tuple(doses))


def _losses(table: SortedTable, spec: TableSpec, action: Ints) -> tuple[Floats, Outcome]:
    name, known = table.role("loss"), None
    if name is None:
        return np.full(action.size, np.nan), Outcome()  # to be computed from the stay
    if spec.like is not None and spec.like.recipe is not None and name == spec.like.roles.loss:
        known = spec.like.recipe.outcome
    turned = known is not None and known.kind == "reward"
    reward = spec.reward is not None or (spec.loss is not None and turned)
    known = known if reward == turned else None
    place, column = table.place(name), table.cells.column(name)
    values, outcome = read_outcome(place, column, reward=reward, bad=spec.bad, known=known)
    loss = table.in_order(values)
    nan = column.is_null(nan_is_null=True).to_numpy() & ~column.is_null().to_numpy()
    odd = np.isinf(loss) | (table.in_order(nan) & (action != NO_ACTION))
    fix = "Leave the cell empty where the loss of an action is not known."
    require(place, "must be finite", ~odd, rows=table.rows, fix=fix)
    size = np.abs(np.nan_to_num(loss))
    rule = f"must be within +-{_LARGEST_LOSS:g}"
    require(place, rule, size <= _LARGEST_LOSS, rows=table.rows, fix="Rescale it.")
    return loss, outcome
