"""What reading a table did to it, told in a line each."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import NO_ACTION
from etips.data.schema import MISSING_SUFFIX
from etips.data.stay_arrays import StayArrays
from etips.disclosure import FEW, are_few, tells_few
from etips.errors import DataError
from etips.notes import note


def tell_gaps(gaps: Mapping[str, int], n_columns: int, *, left: int = 0) -> None:
    """How many feature values are missing, and what stands there.

    Args:
        gaps: Missing values of each column that has any.
        n_columns: How many columns there are.
        left: How many of them have no value before them in their stay.
    """
    if gaps:
        total = sum(gaps.values())
        many = f"{shown(total)} missing values in {len(gaps)} of {n_columns} columns"
        done = "become the mean of the training stays"
        if not left:
            done = "are carried forward"
        elif left < total:
            done = f"are carried forward, or {done} where a stay has no value before"
        note(f"{many} {done}; columns name{MISSING_SUFFIX} say where")


def tell_new_gaps(names: list[str]) -> None:
    """Which columns have gaps though those of the data before had none."""
    if names:
        note(
            f"{_columns(names)} missing values, unlike in the data before; the stay's last value, "
            "or the mean of the training stays, stands there"
        )


def tell_empty(names: list[str]) -> None:
    """Which columns were left out since they hold nothing."""
    if names:
        one = len(names) == 1
        which = f"column {names[0]} holds" if one else f"columns {', '.join(names)} hold"
        note(f"{which} no value at all and {'is' if one else 'are'} left out")


def tell_unseen(unseen: Mapping[str, int]) -> None:
    """How many cells hold what was not seen before."""
    for name, count in unseen.items():
        if count:
            what = "rows hold a level not seen before, read as missing"
            note(f"column {name}: {shown(count)} {what}")


def refuse_unseen(where: str, unseen: Mapping[str, int], total: int) -> None:
    """Refuse cells that hold what was not seen before."""
    for name, count in unseen.items():
        if count:
            rule = f"must be one of the levels known so far; {count} of {total} rows fail"
            fix = '--missing carry (missing="carry") reads them as missing.'
            raise DataError(f"{where}, column {name}", rule, fix=fix)


def tell_lag(data: StayArrays, *, fixed: bool = False) -> None:
    """How many steps with an action and a loss are no decisions since nothing comes before.

    Args:
        data: The stays.
        fixed: Whether a policy settles the lag, so that nobody can ask for another.
    """
    if data.schema.lag != 1 or data.action is None or data.loss is None:
        return
    first = data.offsets[:-1]
    known: NDArray[np.bool_] = data.action[first] != NO_ACTION
    if data.missing_loss == "drop":
        known = known & ~np.isnan(data.loss[first])
    if data.eligible is not None:
        known = known & data.eligible[first]
    if not known.any():
        return
    count = shown_beside(int(known.sum()), (first.size, int(data.offsets[-1])))
    remedy = "" if fixed else "; --lag 0 keeps them"
    note(f"lag 1: {count} first steps of stays are no decisions{remedy}")


def shown_beside(count: int, known: Sequence[int]) -> str:
    """A count as it may be printed beside others that results tell: about right, if need be."""
    if tells_few(count, known) and not are_few(count):
        return f"about {round(count, -1):,}"
    return shown(count)


def shown(count: int) -> str:
    """A count as it may be printed."""
    return FEW if are_few(count) else f"{count:,}"


def _columns(names: list[str]) -> str:
    return f"column {names[0]} has" if len(names) == 1 else f"columns {', '.join(names)} have"
