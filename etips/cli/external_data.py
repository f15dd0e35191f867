"""A second source beside the data of a command, read as they are."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from etips.cli.policy_options import AskedPolicies
from etips.data.joining import join
from etips.data.tables.columns import TableColumns, read_data
from etips.data.trajectories import Trajectories
from etips.errors import FileError, SettingError

if TYPE_CHECKING:
    from etips.results.decision_groups import By

PLACE = "data"
"""What the places of a comparison of two sources are called."""


class Joined(NamedTuple):
    """Stays of one source or of two.

    Args:
        stays: Of both.
        sources: Where each is from; None where there is but one source.
        places: Of the decisions.
    """

    stays: Trajectories
    sources: NDArray[np.str_] | None
    places: "By | None"


def require_one_way(by: str | None, external: Path | None) -> None:
    """Refuse places by a column and by source at once."""
    if external is not None and by is not None:
        raise SettingError("--by, --external", "must not both be given")


def join_external(
    asked: AskedPolicies,
    stays: Trajectories,
    external: Path | None,
    *,
    allow_seen: bool,
    places: "By | None" = None,
) -> Joined:
    """The stays of both, where each is from, and the place of each decision.

    Args:
        asked: Policies, which must not have learned from the second either.
        stays: Of the command.
        external: Folder of the second source; None leaves all as it is.
        allow_seen: Take stays that a policy learned from.
        places: Of the decisions, where there is no second source.
    """
    if external is None:
        return Joined(stays, None, places)
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
    joined, sources = join(dict(zip(names, (stays, other), strict=True)))
    return Joined(joined, sources, {PLACE: sources[joined.decisions().stay]})
