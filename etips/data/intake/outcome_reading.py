"""The outcome as a loss: a reward turned round, plain words (yes, no, dead, alive) read."""

import numpy as np
import pyarrow as pa

from etips.data.decisions import Floats
from etips.data.intake.recipe import Outcome
from etips.data.intake.treatment_cells import label_column
from etips.data.tables.arrow_columns import is_categorical, is_text, numbers
from etips.errors import DataError

YES = {"yes", "y", "true", "t", "1", "ja", "oui", "si", "sí", "sim"}
NO = {"no", "n", "false", "f", "0", "nein", "non", "não"}
BAD = {
    *("dead", "died", "death", "deceased", "expired", "fatal", "failure", "failed", "worse"),
    *("worsened", "deteriorated", "relapse", "relapsed"),
}
GOOD = {
    *("alive", "living", "survived", "survivor", "recovered", "recovery", "cured", "success"),
    *("improved", "better", "well", "remission", "discharged", "home"),
}


def read_outcome(
    where: str, column: pa.ChunkedArray, *, reward: bool, known: Outcome | None = None
) -> tuple[Floats, Outcome]:
    """The loss of each row, NaN where it is missing, and how it came about.

    A reward in [0, 1] becomes one minus it, so that risks stay shares; any other minus it.

    Args:
        where: The place, for refusals.
        column: As the table has it.
        reward: Whether more of it is better.
        known: How the outcome of the log was read that a policy was fitted on.
    """
    values, words = _numbers(where, column, reward=reward)
    if not reward:
        return values, Outcome(words=words)
    told = values[~np.isnan(values)]
    share = bool(((told >= 0) & (told <= 1)).all())
    outcome = Outcome("reward", "one_minus" if share else "minus", words)
    if known is not None and known.kind == "reward":
        outcome = known
    return (1.0 - values if outcome.rule == "one_minus" else -values), outcome


def _numbers(
    where: str, column: pa.ChunkedArray, *, reward: bool
) -> tuple[Floats, tuple[str, ...]]:
    """An outcome as numbers, and the words read as 1; those not plain are refused."""
    kind = column.type.value_type if is_categorical(column.type) else column.type
    if not is_text(kind):
        return numbers(where, column), ()
    words = label_column(where, where, column)
    one, zero = (GOOD, BAD) if reward else (BAD, GOOD)
    found = [_value(word.casefold(), one, zero) for word in words.labels]
    kinds = {own for own, _ in found}
    if None in kinds or len(kinds) != 1:
        if any(_is_number(word) for word in words.labels):
            numbers(where, column)  # tells which rows are text
        rule = "must be a number, or words as plain as yes and no, dead and alive"
        raise DataError(where, rule, fix="Turn it into 1 and 0.")
    ones = tuple(word for word, (_, value) in zip(words.labels, found, strict=True) if value == 1)
    return np.array([*(value for _, value in found), np.nan])[words.code], ones


def _is_number(word: str) -> bool:
    try:
        return bool(np.isfinite(float(word)))
    except ValueError:
        return False


def _value(word: str, one: set[str], zero: set[str]) -> tuple[str | None, float]:
    """Of which pair of words it is one, and what it counts."""
    for kind, ones, zeros in (("answer", YES, NO), ("fate", one, zero)):
        if word in ones | zeros:
            return kind, float(word in ones)
    return None, float("nan")
