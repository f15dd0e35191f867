"""Learn, evaluate and explain treatment policies from logged decisions."""

from importlib import import_module
from typing import TYPE_CHECKING

from etips.data import Scaler, Schema, Trajectories, folds, from_arrays, sofa_change, split
from etips.errors import DataError, EtipsError, FileError, SettingError

if TYPE_CHECKING:
    from etips.data.storage import load_trajectories as load
    from etips.data.storage import write_table
    from etips.data.tables import read_table

__version__ = "0.1.0"

__all__ = [
    "DataError",
    "EtipsError",
    "FileError",
    "Scaler",
    "Schema",
    "SettingError",
    "Trajectories",
    "folds",
    "from_arrays",
    "load",
    "read_table",
    "sofa_change",
    "split",
    "write_table",
]

_LATER = {
    "load": ("etips.data.storage", "load_trajectories"),
    "read_table": ("etips.data.tables", "read_table"),
    "write_table": ("etips.data.storage", "write_table"),
}


def __getattr__(name: str) -> object:
    """What needs pyarrow or torch is imported on first use: `import etips` stays quick."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATER[name]
    return getattr(import_module(module), attribute)
