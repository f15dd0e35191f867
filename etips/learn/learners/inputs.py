"""What a learner may be given: Trajectories, or arrays as scikit-learn users hold them."""

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from numpy.typing import ArrayLike

from etips.data.tables.arrays import as_trajectories
from etips.data.trajectories import Trajectories

if TYPE_CHECKING:  # simple policies come without torch
    from etips.learn.training.epoch_report import Report
    from etips.runs.run import Run


class Learning(Protocol):
    """What a class must have to take `fit` over."""

    def _learn(self, stays: Trajectories, report: "Report | None", run: "Run | None") -> None:
        """Learn; what is learnt becomes attributes that end in an underscore."""


L = TypeVar("L", bound=Learning)


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
