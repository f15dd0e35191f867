"""Learn, evaluate and explain treatment policies from logged decisions.

Data
    read_table      a log: CSV, Excel, Parquet, pandas, polars, Arrow
    check           what would be read of a table, before anything is (a TableCheck)
    from_arrays     the same from NumPy arrays
    split, folds    parts that share no patient
    align           a saved log with the features and dose classes of another, such as a policy's
    write_table     a log as a table again
    Trajectories, Schema, Scaler, sofa_change

Policies that learn: `fit(data)`, then `predict`, `predict_proba`, `save`
    SuperLearner    what we recommend: models of every kind, stacked, that lean to the clinicians
    EtIPS, TIPS, EIPS, IPS          from weighted decisions (the paper's, and its kin)
    DoublyRobust                    from predicted losses, corrected by weighted decisions
    BetaIPS, LogSumExp, LogSmoothing, ExponentialSmoothing, WeightedLikelihood, Pessimistic
                                    from weighted decisions, by objectives since the paper
    DirectMethod, StayDirectMethod  the least predicted loss, of a decision or of the stay
    PredictiveModel                 imitates the clinicians
    QLearning, OWL, RWL, POEM       methods of others: docs/method/systems.md
    NormPOEM, BanditNet, AIClinician
    MostFrequent, RandomPolicy      to compare with
    load                            a saved policy

Policies that are written down
    Rule, SqlRule   a Python function, or an SQL expression, over a row of the table

Policies that d3rlpy learned (etips[rl])
    to_d3rlpy       logged stays as its data set
    D3rlpyPolicy    its algorithm as a policy to evaluate

Results: print them, look at them in a notebook, `to_frame()`, `report("report.html")`
    evaluate        what a log says of policies, with a verdict on every number (Results)
    compare         policies, guidelines or years against each other (Comparison)
    explain         why a policy recommends what it does: for a stay, on the whole, as rules

Refusals
    EtipsError, with DataError, FileError and SettingError: one line that says what to do

Settings of training are in `etips.learn` (Settings, Training), simulated hospitals whose truth is
known in `etips.worlds`, commands in `etips --help`.
"""

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
from etips.lazy_names import list_lazily, load_lazily
from etips.version import __version__ as __version__

if TYPE_CHECKING:
    from etips.checks.examination import check as check
    from etips.checks.table_check import TableCheck as TableCheck
    from etips.data.alignment import align as align
    from etips.data.storage import write_table as write_table
    from etips.data.tables.reading import read_table as read_table
    from etips.explanation.explain import explain as explain
    from etips.learn.learners.catalogue import *  # noqa: F403  # the learners
    from etips.policies.d3rlpy_bridge import D3rlpyPolicy as D3rlpyPolicy
    from etips.policies.d3rlpy_bridge import to_d3rlpy as to_d3rlpy
    from etips.policies.sql_rules import SqlRule as SqlRule
    from etips.policies.written_rules import Rule as Rule
    from etips.results.compare_policies import compare as compare
    from etips.results.comparison_result import Comparison as Comparison
    from etips.results.evaluate import evaluate as evaluate
    from etips.results.results import Results as Results
    from etips.runs.folder import load as load

_LATER = {
    "Comparison": "etips.results.comparison_result",
    "D3rlpyPolicy": "etips.policies.d3rlpy_bridge",
    "Results": "etips.results.results",
    "Rule": "etips.policies.written_rules",
    "SqlRule": "etips.policies.sql_rules",
    "TableCheck": "etips.checks.table_check",
    "align": "etips.data.alignment",
    "check": "etips.checks.examination",
    "compare": "etips.results.compare_policies",
    "evaluate": "etips.results.evaluate",
    "explain": "etips.explanation.explain",
    "load": "etips.runs.folder",
    "read_table": "etips.data.tables.reading",
    "to_d3rlpy": "etips.policies.d3rlpy_bridge",
    "write_table": "etips.data.storage",
}


def __getattr__(name: str) -> object:
    return load_lazily(__name__, name, _LATER)


def __dir__() -> list[str]:
    return list_lazily(__name__, _LATER)
