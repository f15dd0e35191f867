"""Learn, evaluate and explain treatment policies from logged decisions."""

from typing import TYPE_CHECKING

from etips.data import Scaler as Scaler
from etips.data import Schema as Schema
from etips.data import Trajectories as Trajectories
from etips.data import folds as folds
from etips.data import from_arrays as from_arrays
from etips.data import sofa_change as sofa_change
from etips.data import split as split
from etips.errors import DataError as DataError
from etips.errors import EtipsError as EtipsError
from etips.errors import FileError as FileError
from etips.errors import SettingError as SettingError
from etips.lazy_names import load_lazily
from etips.version import __version__ as __version__

if TYPE_CHECKING:
    from etips.checks.table_check import TableCheck as TableCheck
    from etips.checks.table_check import check as check
    from etips.data.tables.reading import read_table as read_table
    from etips.data.trajectory_writer import write_table as write_table
    from etips.learn.learners.catalogue import *  # noqa: F403  # the learners
    from etips.learn.nuisance.boosting import BoostedTrees as BoostedTrees
    from etips.policies.sql_rules import SqlRule as SqlRule
    from etips.policies.written_rules import Rule as Rule
    from etips.results.compare_policies import compare as compare
    from etips.results.evaluate import evaluate as evaluate
    from etips.runs.loading import load as load

_LATER = {
    "BoostedTrees": "etips.learn.nuisance.boosting",
    "Rule": "etips.policies.written_rules",
    "SqlRule": "etips.policies.sql_rules",
    "TableCheck": "etips.checks.table_check",
    "check": "etips.checks.table_check",
    "compare": "etips.results.compare_policies",
    "evaluate": "etips.results.evaluate",
    "load": "etips.runs.loading",
    "read_table": "etips.data.tables.reading",
    "write_table": "etips.data.trajectory_writer",
}


def __getattr__(name: str) -> object:
    return load_lazily(__name__, name, _LATER)
