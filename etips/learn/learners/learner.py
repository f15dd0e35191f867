"""What a learner can do once it has a policy, as functions that the classes take over.

A class says `predict = learner.predict`: nothing is inherited, and its reader sees all it can do.
"""

from pathlib import Path
from typing import Any, Protocol, Self

from numpy.typing import ArrayLike

from etips.data.decisions import Bools, Floats, Ints
from etips.data.trajectories import Trajectories
from etips.learn.training.epoch_report import Report
from etips.policies.policy import fitted
from etips.policies.policy_files import save_policy
from etips.runs.run import Run


class Learner(Protocol):
    """What every learner can do."""

    def fit(
        self,
        data: Trajectories | ArrayLike,
        action: ArrayLike | None = None,
        loss: ArrayLike | None = None,
        *,
        report: Report | None = None,
        run: Run | None = None,
        **arrays: Any,  # noqa: ANN401  # static, lengths, propensity, groups: see from_arrays
    ) -> Self:
        """Learn; return self."""

    def predict_proba(self, data: Trajectories | ArrayLike, **arrays: Any) -> Floats:  # noqa: ANN401
        """Probability of every action, shape (n_decisions, n_actions), in decision order."""

    def predict(self, data: Trajectories | ArrayLike, **arrays: Any) -> Ints:  # noqa: ANN401
        """The recommended action of each decision, shape (n_decisions,)."""

    def abstains(self, data: Trajectories | ArrayLike, **arrays: Any) -> Bools:  # noqa: ANN401
        """Where no action has enough support, shape (n_decisions,)."""

    def get_params(self, deep: bool = True) -> dict[str, object]:
        """Settings by name."""

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted policy; `etips.load` reads it back."""


def predict_proba(learner: object, data: Trajectories | ArrayLike, **arrays: Any) -> Floats:  # noqa: ANN401
    """Probability of every action, shape (n_decisions, n_actions), in decision order."""
    return fitted(learner).predict_proba(data, **arrays)


def predict(learner: object, data: Trajectories | ArrayLike, **arrays: Any) -> Ints:  # noqa: ANN401
    """The recommended action of each decision, shape (n_decisions,)."""
    return fitted(learner).predict(data, **arrays)


def abstains(learner: object, data: Trajectories | ArrayLike, **arrays: Any) -> Bools:  # noqa: ANN401
    """Where no action has enough support, shape (n_decisions,)."""
    return fitted(learner).abstains(data, **arrays)


def save(learner: object, folder: str | Path, *, overwrite: bool = False) -> None:
    """Write the fitted policy; `etips.load` reads it back."""
    save_policy(fitted(learner), folder, overwrite=overwrite)
