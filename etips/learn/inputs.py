"""What a learner may be given: Trajectories, or arrays as scikit-learn users hold them."""

from typing import Any

from numpy.typing import ArrayLike

from etips.data.arrays import from_arrays
from etips.data.trajectories import Trajectories
from etips.errors import SettingError


def as_trajectories(
    data: Trajectories | ArrayLike,
    action: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    **more: Any,  # noqa: ANN401  # the keyword arguments of from_arrays
) -> Trajectories:
    """Trajectories as they are, or arrays as `from_arrays` takes them."""
    if isinstance(data, Trajectories):
        if action is not None or loss is not None or any(v is not None for v in more.values()):
            raise SettingError("data", "must be Trajectories alone, or arrays")
        return data
    return from_arrays(data, action, loss, **{k: v for k, v in more.items() if v is not None})
