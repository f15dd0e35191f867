"""Predictive modelling: do what the clinicians would most likely do."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike
from torch import nn

from etips.data.decisions import Bools, Floats, Ints
from etips.data.trajectories import Trajectories
from etips.learn.foundation import Training, conclude, lay_foundation
from etips.learn.inputs import as_trajectories
from etips.learn.policy import fitted, greedy
from etips.learn.policy_files import save_policy
from etips.learn.runs import Run
from etips.learn.training import Report
from etips.models.encoders import GRU, Encoder


@dataclass(kw_only=True, eq=False)
class PredictiveModel:
    """Imitate the clinicians: the fitted propensities are the policy.

    Args:
        encoder: As in `EtIPS`.
        training: Folds, device, and settings of the networks.
        seed: Same seed, machine and versions, same policy.
    """

    encoder: Encoder | nn.Module | type[nn.Module] = field(default_factory=GRU)
    training: Training = field(default_factory=Training)
    seed: int = 0

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
        """Learn from logged stays, or from arrays as `from_arrays` takes them; return self.

        With a `run` the work is kept in its folder and taken up where it was stopped.
        """
        stays = as_trajectories(data, action, loss, **arrays)
        base = lay_foundation(
            stays,
            encoder=self.encoder,
            model=None,
            training=self.training,
            support=0.0,
            clip=0.01,
            seed=self.seed,
            outcome=False,
            report=report,
            run=run,
        )
        self.policy_ = conclude(base, "imitation")
        self.quality_ = base.propensity.quality
        return self

    def predict_proba(self, data: Trajectories | ArrayLike, **arrays: Any) -> Floats:  # noqa: ANN401
        """Probability of every action, shape (n_decisions, n_actions), in decision order."""
        return fitted(self).answer(as_trajectories(data, **arrays)).probabilities

    def predict(self, data: Trajectories | ArrayLike, **arrays: Any) -> Ints:  # noqa: ANN401
        """The recommended action of each decision, shape (n_decisions,)."""
        return greedy(fitted(self).answer(as_trajectories(data, **arrays)))

    def abstains(self, data: Trajectories | ArrayLike, **arrays: Any) -> Bools:  # noqa: ANN401
        """Where no action has enough support, shape (n_decisions,)."""
        return fitted(self).answer(as_trajectories(data, **arrays)).abstained

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write the fitted policy; `etips.load` reads it back."""
        save_policy(fitted(self), folder, overwrite=overwrite)
