"""Data that is read as what a run was fitted on."""

from pathlib import Path
from typing import TYPE_CHECKING

from etips.data.tables.columns import TableColumns, read_columns, read_data
from etips.policies.policy_manifest import read_schema
from etips.runs.file_names import CONFIG, POLICY

if TYPE_CHECKING:
    from etips.data.trajectories import Trajectories


def read_like(run: Path, data: Path, columns: TableColumns) -> "Trajectories":
    """The stays of a table, or of a folder, in the schema of a run or of a policy.

    Args:
        run: Folder of the run, or of the policy alone.
        data: What to read.
        columns: What the options say of it; what they leave out is as it was for the run.
    """
    inside, config = run / POLICY, run / CONFIG
    schema = read_schema(inside if inside.is_dir() else run)
    earlier = [read_columns(config, of_run=True)] if config.is_file() else []
    return read_data(data, columns, like=schema, earlier=earlier)
