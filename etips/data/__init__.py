"""Trajectories, long tables in and out, splits, scaling, files on disk."""

from importlib import import_module
from typing import TYPE_CHECKING

from etips.data.coded import Coded, Truth
from etips.data.decisions import Decisions, Stay, final_value, sofa_change
from etips.data.scale import Scaler
from etips.data.schema import Roles, Schema
from etips.data.splitting import assign_folds, folds, split
from etips.data.tables.arrays import from_arrays, from_obp, obp_propensities, to_obp
from etips.data.trajectories import Histories, Trajectories

if TYPE_CHECKING:
    from etips.data.storage import load_trajectories, write_table
    from etips.data.tables.reading import read_table

__all__ = [
    "Coded",
    "Decisions",
    "Histories",
    "Roles",
    "Scaler",
    "Schema",
    "Stay",
    "Trajectories",
    "Truth",
    "assign_folds",
    "final_value",
    "folds",
    "from_arrays",
    "from_obp",
    "load_trajectories",
    "obp_propensities",
    "read_table",
    "sofa_change",
    "split",
    "to_obp",
    "write_table",
]

_NEED_PYARROW = {
    "load_trajectories": "storage",
    "read_table": "tables.reading",
    "write_table": "storage",
}


def __getattr__(name: str) -> object:
    """Files need pyarrow; learning does not, and must import where it is not installed."""
    if name not in _NEED_PYARROW:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_NEED_PYARROW[name]}"), name)
