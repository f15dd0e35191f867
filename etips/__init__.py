"""Learn, evaluate and explain treatment policies from logged decisions."""

from importlib import import_module
from typing import TYPE_CHECKING

from etips.data import Scaler, Schema, Trajectories, folds, from_arrays, sofa_change, split
from etips.errors import DataError, EtipsError, FileError, SettingError

if TYPE_CHECKING:
    from etips.data.storage import write_table
    from etips.data.tables.reading import read_table
    from etips.learn import (
        EIPS,
        IPS,
        TIPS,
        DirectMethod,
        DoublyRobust,
        EtIPS,
        MostFrequent,
        PredictiveModel,
        RandomPolicy,
    )
    from etips.policies.loading import load
    from etips.results.evaluate import evaluate

__version__ = "0.1.0"

__all__ = [
    "EIPS",
    "IPS",
    "TIPS",
    "DataError",
    "DirectMethod",
    "DoublyRobust",
    "EtIPS",
    "EtipsError",
    "FileError",
    "MostFrequent",
    "PredictiveModel",
    "RandomPolicy",
    "Scaler",
    "Schema",
    "SettingError",
    "Trajectories",
    "evaluate",
    "folds",
    "from_arrays",
    "load",
    "read_table",
    "sofa_change",
    "split",
    "write_table",
]

_LATER = {
    "evaluate": "etips.results.evaluate",
    "load": "etips.policies.loading",
    "read_table": "etips.data.tables.reading",
    "write_table": "etips.data.storage",
}
_LEARNERS = {
    "EIPS",
    "IPS",
    "TIPS",
    "DirectMethod",
    "DoublyRobust",
    "EtIPS",
    "MostFrequent",
    "PredictiveModel",
    "RandomPolicy",
}


def __getattr__(name: str) -> object:
    """What needs pyarrow or torch is imported on first use: `import etips` stays quick."""
    home = "etips.learn" if name in _LEARNERS else _LATER.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
