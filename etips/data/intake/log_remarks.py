"""What is worth a word about a log that was read: rare actions, a benefit as loss, leaks."""

import numpy as np

from etips.data.decisions import NO_ACTION
from etips.data.intake.benefit import ask_codes, ask_direction
from etips.data.intake.leaks import note_leaks
from etips.data.intake.missing_codes import ask_missing_codes
from etips.data.missing_loss import count_missing_losses
from etips.data.trajectories import Trajectories
from etips.disclosure import FEW, LEAST_PEOPLE, are_few
from etips.notes import note

_MOST_NAMED = 8


def remark_on_log(data: Trajectories, *, column: str | None, reward: bool) -> None:
    """Tell what the reader of a log should know before anything is learned from it.

    Args:
        data: The log.
        column: Of the outcome, None where there is none yet.
        reward: Whether it was given as a reward.
    """
    if not data.logged or data.n_decisions == 0:
        return
    note_no_action(data)
    note_rare_actions(data)
    note_equal_losses(data)
    ask_missing_codes(data)
    if column is not None:
        ask_direction(data, column=column, reward=reward)
        recipe = data.schema.recipe
        if not reward and recipe is not None and not recipe.outcome.words:
            ask_codes(data, column=column)
    note_leaks(data)


def note_no_action(data: Trajectories) -> None:
    """Tell how many rows have no action."""
    assert data.action is not None
    count = int((data.action == NO_ACTION).sum())
    if count:
        rows = f"{FEW} rows have" if are_few(count) else f"{count:,} of {data.n_steps:,} rows have"
        note(f"{rows} no action and are no decisions")


def note_rare_actions(data: Trajectories) -> None:
    """Tell which actions hardly anybody got, without how many those were."""
    rare, schema = rare_actions(data), data.schema
    taken = np.unique(data.logged_action)
    if taken.size == 1:
        assert data.action is not None
        empty = bool((data.action == NO_ACTION).any())
        fix = ". An empty cell is no decision: write a label where none was given" if empty else ""
        name = schema.action_name(taken[0])
        note(f"every decision has the same action, {name}: nothing compares{fix}")
    if not rare:
        return
    names = [schema.action_name(number) for number in rare]
    shown = "; ".join(names[:_MOST_NAMED]) + ("; ..." if len(names) > _MOST_NAMED else "")
    one = len(rare) == 1
    note(
        f"{len(rare)} of {schema.n_actions} actions {'was' if one else 'were'} taken by fewer than "
        f"{LEAST_PEOPLE} people, or by nobody: {shown}. Little can be learned about "
        f"{'it' if one else 'them'}."
    )


def note_equal_losses(data: Trajectories) -> None:
    """Tell where every decision has the same loss, as if only events had been written down."""
    known = data.logged_loss[~np.isnan(data.logged_loss)]
    if not known.size or (known != known[0]).any():
        return
    missing = count_missing_losses(data)
    cause = "" if missing is None else ". An empty cell is not known: write 0 where it means no"
    note(f"every known loss is the same: nothing compares{cause}")


def rare_actions(data: Trajectories) -> list[int]:
    """Actions that fewer than eleven people got, or nobody."""
    cluster, action, k = data.cluster, data.logged_action, data.n_actions
    if cluster.size and int(cluster.max() + 1) * k <= 8 * cluster.size:  # a mark each is cheapest
        got = np.zeros((int(cluster.max()) + 1, k), bool)
        got[cluster, action] = True
        people = got.sum(axis=0)
    else:
        pairs = np.unique(cluster.astype(np.int64) * k + action)
        people = np.bincount(pairs % k, minlength=k)
    return [int(number) for number in np.flatnonzero(people < LEAST_PEOPLE)]
