"""Whatever etips saved, read back: a data set or a policy."""

from pathlib import Path

from etips.data.trajectories import Trajectories
from etips.data.trajectory_reader import load_trajectories
from etips.data.trajectory_writer import MANIFEST as DATA_MANIFEST
from etips.errors import FileError
from etips.models.encoders.registry import AnyEncoder
from etips.policies.policy import FittedPolicy
from etips.policies.policy_files import MANIFEST
from etips.runs.folder import RunFolder


def load(folder: str | Path, *, encoder: AnyEncoder | None = None) -> Trajectories | FittedPolicy:
    """Read a folder that etips wrote; anything changed since is refused by name.

    Args:
        folder: A Trajectories folder, a policy, or a run folder with a policy in it.
        encoder: The torch module a policy was fitted with, if it was not one of ours.
    """
    folder = Path(folder)
    if (folder / DATA_MANIFEST).exists():
        return load_trajectories(folder)
    if (folder / MANIFEST).exists() or RunFolder(folder).has_policy:
        return RunFolder(folder).open_policy(encoder=encoder)
    raise FileError(str(folder), "holds neither a data set nor a policy of etips")
