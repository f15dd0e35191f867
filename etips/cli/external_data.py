"""A second source beside the data of a command, read as they are."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from etips.cli.policy_options import AskedPolicies
from etips.data.joining import join
from etips.data.tables.columns import TableColumns, read_data
from etips.data.trajectories import Trajectories
from etips.errors import FileError

PLACE = "data"
"""What the places of a comparison of two sources are called."""


def join_external(
    asked: AskedPolicies, stays: Trajectories, external: Path, *, allow_seen: bool
) -> tuple[Trajectories, NDArray[np.str_]]:
    """The stays of both, and where each is from.

    Args:
        asked: Policies, which must not have learned from the second either.
        stays: Of the command.
        external: Folder of the second source.
        allow_seen: Take stays that a policy learned from.
    """
    if not external.is_dir():
        raise FileError(str(external), "must be a folder, such as `etips cohort` writes")
    other = read_data(external, TableColumns(), like=stays.schema)
    if asked.fitted and not allow_seen:
        from etips.results.unseen import require_unseen_stays  # noqa: PLC0415

        for part in (stays, other):  # by their own names, which a joined data set has not
            require_unseen_stays(asked.fitted, part)
    names = [path.resolve().name for path in (asked.data, external)]
    if names[0] == names[1]:
        names = [str(path) for path in (asked.data, external)]
    return join(dict(zip(names, (stays, other), strict=True)))
