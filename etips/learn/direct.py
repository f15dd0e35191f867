"""The direct method: predict the loss of every action and take the least."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike
from torch import nn

from etips.data.decisions import Bools, Floats, Ints
from etips.data.trajectories import Trajectories
from etips.learn.foundation import (
    Training,
    as_encoder,
    conclude,
    fit_outcome,
    is_share,
    lay_foundation,
)
from etips.learn.inputs import as_trajectories
from etips.learn.policy import fitted, greedy
from etips.learn.policy_files import save_policy
from etips.learn.runs import Run
from etips.learn.training import Report
from etips.models.encoders import GRU, Encoder


@dataclass(kw_only=True, eq=False)
class DirectMethod:
    """Predict the loss of every action from the history, and recommend the least.

    Args:
        interaction: Let the effect of an action depend on the history. False is the network of the
            paper, which adds a history term to an action term: it ranks the actions the same for
            everybody, so it can only give a constant policy.
        encoder: As in `EtIPS`.
        support: Least propensity of an action that may be recommended; see `lay_foundation`.
        training: Folds, device, and settings of each kind of network.
        seed: Same seed, machine and versions, same policy.
    """

    interaction: bool = True
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
        base = lay_foundation(
            stays,
            encoder=self.encoder,
            model=None,
            training=self.training,
            support=self.support,
            clip=0.01,
            seed=self.seed,
            report=report,
            run=run,
        )
        networks = base.outcome
        if not self.interaction:
            networks, _ = fit_outcome(
                base.prepared,
                as_encoder(self.encoder),
                self.training.with_seed(self.seed).outcome,
                seed=self.seed,
                additive=True,
                report=report,
            )
        # The additive network ranks alike in logits; a mean of chances would bend the ranking.
        chances = self.interaction and is_share(stays)
        self.policy_ = conclude(
            base, "least loss" if chances else "least amount", networks=networks
        )
        self.quality_ = base.propensity.quality
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
