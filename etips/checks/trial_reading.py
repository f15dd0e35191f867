"""A table read to see what comes of it: every fault is kept, and the rest is read without it."""

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import cast

from etips.data.tables.columns import TableColumns
from etips.data.tables.reading import read_table
from etips.data.tables.sources import TableLike
from etips.data.trajectories import Trajectories
from etips.errors import DataError, EtipsError, ResourceError, SeveralFaultsError
from etips.notes import collecting_notes

MOST_TRIES = 5
_COLUMN = re.compile(r", column (.+)$")


@dataclass(frozen=True, eq=False)
class Trial:
    """What reading a table came to.

    Args:
        stays: What was read; None where even the log itself is faulty.
        faults: What is refused, a line each.
        notes: What was remarked on the way.
        without: Faulty features, left aside to read the rest.
    """

    stays: Trajectories | None
    faults: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


def try_reading(table: TableLike, columns: TableColumns, features: Collection[str]) -> Trial:
    """Read a table; where features are faulty, once more without them.

    Args:
        table: The table.
        columns: How it is to be read.
        features: Columns that may be left aside.
    """
    faults: list[str] = []
    aside: list[str] = []
    for _ in range(MOST_TRIES):
        with collecting_notes() as notes:
            try:
                stays = cast(Callable[..., Trajectories], read_table)(table, **columns.arguments)
            except ResourceError:
                raise
            except EtipsError as error:
                known = len(aside)
                for fault in error.faults if isinstance(error, SeveralFaultsError) else (error,):
                    faults += [line for line in (str(fault),) if line not in faults]
                    aside += [name for name in _columns_of(fault) if name in features]
            else:
                return Trial(stays, tuple(faults), tuple(notes), tuple(aside))
        if len(aside) == known:
            break
        columns = _without(columns, aside)
    return Trial(None, tuple(faults), without=tuple(aside))


def _columns_of(fault: EtipsError) -> list[str]:
    named = _COLUMN.search(fault.where) if isinstance(fault, DataError) else None
    return [] if named is None else [named[1]]


def _without(columns: TableColumns, aside: list[str]) -> TableColumns:
    def less(names: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return tuple(name for name in names or () if name not in aside) or None

    drop = tuple(dict.fromkeys([*(columns.drop or ()), *aside]))
    return replace(
        columns, drop=drop, static=less(columns.static), categorical=less(columns.categorical)
    )
