"""A table looked at before anything is learned: guessed, tried, counted."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from etips.checks.column_facts import ColumnFacts, look_at
from etips.checks.guessing import Guesses, guess_columns, is_coded, is_earlier, stacked
from etips.checks.role_words import ACTION, LOSS, SURE, likeness
from etips.checks.table_check import (
    ActionCount,
    Contrast,
    TableCheck,
    feature_names,
    summarize_features,
)
from etips.data.history_rows import visible_rows
from etips.data.sizes import show_sizes
from etips.data.tables.reading import read_by
from etips.data.tables.sources import TableLike, open_source
from etips.data.tables.table_spec import TableSpec
from etips.data.trajectories import Trajectories
from etips.disclosure import hide_together, rounds_to_few, shown_apart, shown_count, shown_parts
from etips.errors import DataError, EtipsError, ResourceError, as_option, faults_of
from etips.evaluation.detectable import detectable_differences
from etips.notes import collecting_notes

_MOST_TRIES = 5
_NEEDS_ACTION = "loss: needs action."


@dataclass(frozen=True, eq=False)
class Trial:
    """What reading a table came to, and the columns that were left out to read it."""

    stays: Trajectories | None
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def try_reading(table: TableLike, columns: TableSpec, features: Collection[str]) -> Trial:
    """Read a table; where features are faulty, once more without them."""
    faults: list[str] = []
    aside: list[str] = []
    for _ in range(_MOST_TRIES):
        known = len(aside)
        with collecting_notes() as notes:
            try:
                stays = read_by(table, columns)
                return Trial(stays, tuple(faults), tuple(notes), tuple(aside))
            except ResourceError:
                raise
            except EtipsError as error:
                for fault in faults_of(error):
                    faults += [] if str(fault) in faults else [str(fault)]
                    place = fault.where if isinstance(fault, DataError) else ""
                    named = place.partition(", column ")[2]
                    aside += [named] if named in features else []
        if len(aside) == known:
            break
        rest = {
            name: tuple(own for own in getattr(columns, name) if own not in aside)
            for name in ("static", "categorical")
            if name in columns.given
        }
        columns = columns.but(drop=tuple(dict.fromkeys([*columns.drop, *aside])), **rest)
    return Trial(None, tuple(faults), without=tuple(aside))


def check(table: TableLike, **columns: Any) -> TableCheck:  # noqa: ANN401  # as read_table's
    """Look at a table before anything is learned from it.

    Takes what `read_table` takes and guesses what is left out; a guess is marked as one. Faults do
    not stop it. Only a table that cannot be opened is refused.
    """
    return check_table(table, TableSpec.of_arguments(columns))


def check_table(table: TableLike, said: TableSpec) -> TableCheck:
    """Look at a table of which some things were said."""
    with collecting_notes() as opening:
        source = open_source(table, said)
    if source.n_rows == 0:
        raise DataError(source.name, "must have at least one row")
    facts = look_at(source)
    guessed = guess_columns(source, facts, said)
    trial = try_reading(source, guessed.columns, set(feature_names(facts, guessed.columns)))
    notes = tuple(dict.fromkeys([*opening, *trial.notes]))
    made = _described(source.name, facts, guessed, replace(trial, notes=notes))
    return made if trial.stays is None else _counted(made, trial.stays)


def _described(
    name: str, facts: Sequence[ColumnFacts], guessed: Guesses, trial: Trial
) -> TableCheck:
    columns = guessed.columns
    recipe = None if trial.stays is None else trial.stays.schema.recipe
    asking = [*guessed.questions, *(line for line in trial.notes if "?" in line)]
    stay = next((own for own in facts if own.name == columns.stay), None)
    return TableCheck(
        name=name,
        n_rows=facts[0].n_rows,
        n_columns=len(facts),
        columns=columns,
        guesses=guessed.guesses,
        suspects=guessed.suspects,
        features=summarize_features(facts, columns, None if recipe is None else recipe.kinds),
        faults=_all_faults(facts, columns, trial.faults),
        questions=tuple(asking),
        remarks=tuple(line for line in trial.notes if line not in asking),
        n_stays=shown_count(facts[0].n_rows if stay is None else stay.n_distinct),
    )


def _all_faults(
    facts: Sequence[ColumnFacts], columns: TableSpec, refused: Sequence[str]
) -> tuple[str, ...]:
    """What a log needs and neither words nor guesses have named, then what reading refused."""
    missing: list[str] = []
    if not columns.treatment:
        named = [own for own in facts if likeness(own.name, ACTION) >= SURE]
        single = [own.name for own in named if own.n_distinct == 1 and not is_earlier(own.name)]
        rule = "must name a column; no name looks like a treatment"
        if single:
            rule = f"column {single[0]} holds one value only, so nothing compares"
        missing = [*stacked(facts), f"action: {rule}. Use --action, or --dose for amounts."]
        refused = [line for line in refused if line != _NEEDS_ACTION]
    if columns.columns["loss"] is None:
        rule = "must name a column; none with several values is named like an outcome"
        fix = "Use --loss (with --bad 1,2 where codes or words are the harm), or --reward."
        coded = [own.name for own in facts if is_coded(own) and likeness(own.name, LOSS) >= SURE]
        if coded:
            rule = f"column {coded[0]} is named like an outcome but holds codes"
            fix = f"Name it and those that are the harm: --loss {as_option(coded[0])} --bad 1,2."
        missing.append(f"loss: {rule}. {fix}")
    return (*missing, *refused)


def _counted(made: TableCheck, stays: Trajectories) -> TableCheck:
    """The same with what was read counted."""
    grouped = stays.group is not None
    people = shown_count(int(np.unique(stays.units).size)) if grouped else None
    made = replace(made, n_stays=shown_count(stays.n_stays), n_people=people, lag=stays.lag)
    if not stays.logged or not stays.n_decisions:
        return made
    lost = stays.with_lag(0).n_decisions - stays.n_decisions if stays.lag else 0
    sizes = show_sizes(stays)  # as results tell them later
    # Of one row a patient, rows less decisions are people too.
    rows, able, away = shown_apart(
        (made.n_rows or 0, stays.n_decisions + lost, lost), known=sizes.counts
    )
    names = stays.schema.actions or tuple(str(n) for n in range(stays.n_actions))
    action = stays.logged_action
    decisions = np.bincount(action, minlength=stays.n_actions)
    pairs = np.unique(np.stack([action, stays.cluster], axis=1), axis=0)
    who = np.bincount(pairs[:, 0], minlength=stays.n_actions)
    hidden = hide_together(who, decisions).tolist()
    counts = [
        (None, None) if unseen else own
        for unseen, *own in zip(hidden, decisions.tolist(), who.tolist(), strict=True)
    ]
    return replace(
        made,
        n_rows=rows,
        n_stays=sizes.n_stays,
        n_people=sizes.n_people if grouped else None,
        n_decisions=sizes.n_decisions,
        lost_to_lag=None if able is None or sizes.n_decisions is None else away,
        mean_loss=_mean_loss(stays),
        actions=tuple(ActionCount(name, *own) for name, own in zip(names, counts, strict=True)),
        contrasts=_contrasts(stays, names, hidden),
    )


def _mean_loss(stays: Trajectories) -> float | None:
    """The mean loss; of a loss of 0 and 1 it would tell how many had one."""
    loss = stays.logged_loss[~np.isnan(stays.logged_loss)]
    two = bool(np.isin(loss, (0, 1)).all())
    if not loss.size or (two and None in shown_parts(int(loss.sum()), int((1 - loss).sum()))):
        return None
    return float(loss.mean())


def _contrasts(
    stays: Trajectories, names: Sequence[str], hidden: Sequence[bool]
) -> tuple[Contrast, ...]:
    _, clusters = np.unique(stays.cluster, return_inverse=True)
    found = detectable_differences(
        visible_rows(stays), stays.logged_action, stays.logged_loss, clusters
    )
    return tuple(
        Contrast(names[own.action], own.difference, own.effective_n)
        for own in found
        if not hidden[own.action] and not rounds_to_few(own.effective_n)
    )
