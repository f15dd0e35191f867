"""Doubly robust learning: minimise the doubly robust risk, starting from the clinicians."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor, nn

from etips.data.decisions import Bools, Floats, Ints
from etips.data.trajectories import Trajectories
from etips.learn.crossfit import fit_sets
from etips.learn.foundation import Foundation, Training, check_pull, conclude, lay_foundation
from etips.learn.inputs import as_trajectories
from etips.learn.objectives import doubly_robust, forbid, pull
from etips.learn.policy import fitted, greedy
from etips.learn.policy_files import save_policy
from etips.learn.propensity import PropensityModel
from etips.learn.runs import Run
from etips.learn.training import Report
from etips.models.bundle import Bundle
from etips.models.encoders import GRU, Encoder


@dataclass(kw_only=True, eq=False)
class DoublyRobust:
    """Minimise the doubly robust risk: predicted losses, corrected by weighted residuals.

    Both the propensities and the predicted losses are cross-fitted. No translation is needed: the
    correction has mean zero, so there is nothing to flee from.

    Args:
        propensity: As in `EtIPS`.
        kl: Pull towards the propensities.
        clip: Logged propensities below this are raised to it.
        encoder: As in `EtIPS`.
        support: Least propensity of an action that may be recommended; see `lay_foundation`.
        training: Folds, device, and settings of each kind of network.
        seed: Same seed, machine and versions, same policy.
    """

    propensity: PropensityModel | None = None
    kl: float = 0.02
    clip: float = 0.01
    encoder: Encoder | nn.Module | type[nn.Module] = field(default_factory=GRU)
    support: float | None = None
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
        check_pull(self.kl)
        base = lay_foundation(
            stays,
            encoder=self.encoder,
            model=self.propensity,
            training=self.training,
            support=self.support,
            clip=self.clip,
            seed=self.seed,
            report=report,
            run=run,
        )
        self.policy_ = conclude(base, "softmax", networks=self._train(base, report))
        self.quality_ = base.propensity.quality
        self.clipped_share_ = base.clipped_share
        self.support_ = base.support
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

    def _train(self, base: Foundation, report: Report | None) -> Bundle:
        prepared, networks = base.prepared, base.propensity.bundle
        assert base.expected is not None
        expected = prepared.by_row(base.expected.astype(np.float32))
        allowed, log_chance = base.allowed_rows(), base.log_chance_rows()
        likely = base.log_propensity_rows()

        def objective(outputs: Tensor, seen: Tensor) -> Tensor:
            logits = forbid(outputs, allowed[seen])
            action, loss = prepared.action[seen], prepared.loss[seen]
            value = doubly_robust(logits, action, loss, log_chance[seen], expected[seen])
            return value + self.kl * pull(logits, likely[seen]) if self.kl else value

        settings = self.training.with_seed(self.seed + 1).policy
        return fit_sets(
            prepared,
            networks.network,
            objective,
            stage="policy",
            settings=settings,
            start=networks,
            report=report,
        )
