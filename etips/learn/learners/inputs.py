"""What a learner may be given: Trajectories, or arrays as scikit-learn users hold them."""

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from numpy.typing import ArrayLike

from etips.data.tables.arrays import from_arrays
from etips.data.trajectories import Trajectories
from etips.errors import SettingError

if TYPE_CHECKING:  # simple policies come without torch
    from etips.learn.training.loop import Report
    from etips.runs.run import Run


class Learning(Protocol):
    """What a class must have to take `fit` over."""

    def _learn(self, stays: Trajectories, report: "Report | None", run: "Run | None") -> None:
        """Learn; what is learnt becomes attributes that end in an underscore."""


L = TypeVar("L", bound=Learning)


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


def fit(
    learner: L,
    data: Trajectories | ArrayLike,
    action: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    *,
    report: "Report | None" = None,
    run: "Run | None" = None,
    **arrays: Any,  # noqa: ANN401
) -> L:
    """Learn from logged stays, or from arrays as `from_arrays` takes them; return self.

    Args:
        learner: The learner itself.
        data: Logged stays, or features.
        action: Logged actions, where `data` are features.
        loss: Their losses.
        report: Told after every epoch.
        run: Keeps the work in its folder and takes it up where it was stopped.
        **arrays: static, lengths, propensity, groups; see `from_arrays`.
    """
    stays = as_trajectories(data, action, loss, **arrays)
    learner._learn(stays, report, run)
    return learner
