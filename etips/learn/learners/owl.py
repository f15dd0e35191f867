"""Outcome weighted learning: the best action as a class, decisions weighted by their reward."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number, require_whole
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.fit import Fit
from etips.learn.learners.row_learner import RowLearner, RowLog
from etips.learn.nuisance.outcome import is_share
from etips.learn.tabular.margins import draw_waves, fit_hinge
from etips.models.row_model import RowModel, lift

Kernel = Literal["linear", "rbf"]
"""What scores are made of: a line in the summary, or a Gaussian kernel."""

RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
"""Strengths of the ridge that cross-validation chooses from."""

Fitting = Callable[[Tensor, Tensor, Tensor, int, float, Tensor | None], Tensor]
"""Coefficients from rows, actions, weights, number of actions, ridge and where to start."""

MOST_ROWS = 6_000
"""Cross-validation looks at no more decisions than this: it only has to rank four strengths."""

FIRST_ROWS = 20_000
"""Of more than twice as many decisions, so many are learned from first: what they lead to is where
all of them start."""

FOLDS = 3
WAVES = 300
"""Cosines of the Gaussian kernel."""


@dataclass(kw_only=True, eq=False)
class OWL(RowLearner):
    """Outcome weighted learning (Zhao et al. 2012).

    A support vector machine classifies which action was taken, each decision weighted by its reward
    over its propensity, so that actions that did well count. The reward is 1 less the loss where
    losses lie in [0, 1], and minus the loss otherwise, as it comes; a negative one speaks for the
    other actions instead (Liu et al. 2018). A constant added to every loss therefore hides their
    differences, and the machine learns what was done instead of what did well: see `RWL`.

    Args:
        kernel: "linear" in the summary of the history, or "rbf".
        ridge: Weight of the squared coefficients; by cross-validation if left out.
        reward_from: What losses are taken off; 1 or 0, as above, if left out.
        n_waves: Random waves that stand for the Gaussian kernel (Rahimi and Recht 2007), so that
            no patient's row is kept.
        propensities: "estimated" by a logistic regression on the summary, or "known".
        support: As in `RowLearner`, like the rest.
        clip: Likewise.
        seed: Of folds and waves.
    """

    kernel: Kernel = "linear"
    ridge: float | None = None
    reward_from: float | None = None
    n_waves: int = WAVES

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:  # noqa: ARG002
        check_machine(self.kernel, self.ridge, self.n_waves)
        log = self._read(stays)
        weight = self._rewards(stays) / log.chance
        machine = Machine.of(log, self.kernel, self.n_waves, seed=self.seed)
        scores = machine.fit(fit_hinge, weight, self.ridge, seed=self.seed)
        return log.fit("least amount", machine.model(-scores), support=self.support)

    def _rewards(self, stays: Trajectories) -> Floats:
        """High where the loss is low; the method would have them not negative."""
        start = 1.0 if is_share(stays) else 0.0
        if self.reward_from is not None:
            require_number("reward_from", self.reward_from)
            start = float(self.reward_from)
            if not np.isfinite(start):
                raise SettingError("reward_from", "must be finite")
        return start - stays.logged_loss


def check_machine(kernel: str, ridge: float | None, n_waves: int) -> None:
    """Refuse settings of a machine that make no sense."""
    if kernel not in get_args(Kernel):
        raise SettingError("kernel", "must be linear or rbf")
    if ridge is not None:
        require_number("ridge", ridge)
        if not 0 < ridge < np.inf:
            raise SettingError("ridge", "must be above zero")
    require_whole("n_waves", n_waves, least=1)


@dataclass(frozen=True, eq=False)
class Machine:
    """Rows as a machine sees them, and how its strength is chosen.

    Args:
        log: The decisions.
        lifted: Rows, or waves of them, shape (n, m).
        basis: Directions of the waves; None for a linear machine.
        phase: Their phases.
    """

    log: RowLog
    lifted: Tensor
    basis: Floats | None = None
    phase: Floats | None = None

    @classmethod
    def of(cls, log: RowLog, kernel: Kernel, n_waves: int, *, seed: int) -> "Machine":
        """Rows for a kernel."""
        if kernel == "linear" or not log.rows.shape[1]:
            return cls(log, log.rows)
        basis, phase = draw_waves(log.rows, n_waves, width=None, seed=seed)
        lifted = lift(log.rows.numpy(), basis.astype(np.float32), phase.astype(np.float32))
        return cls(log, torch.from_numpy(np.asarray(lifted, np.float32)), basis, phase)

    def fit(self, fit: Fitting, weight: Floats, ridge: float | None, *, seed: int) -> Floats:
        """Coefficients of the scores, the ridge by cross-validated risk where it is left out."""
        if ridge is None:
            ridge = self._choose(fit, weight, seed)
        every = np.arange(len(weight))
        if len(every) <= 2 * FIRST_ROWS:
            return self._coefficients(fit, weight, every, ridge)
        some = np.sort(np.random.default_rng([seed, 2]).permutation(every)[:FIRST_ROWS])
        start = self._coefficients(fit, weight, some, ridge)
        return self._coefficients(fit, weight, every, ridge, start)

    def model(self, coefficients: Floats) -> RowModel:
        """What the policy keeps."""
        if self.basis is None:
            return self.log.model(coefficients)
        return self.log.model(coefficients, form="waves", basis=self.basis, phase=self.phase)

    def _choose(self, fit: Fitting, weight: Floats, seed: int) -> float:
        """The ridge of least self-normalised risk on held-out patients."""
        fold = self.log.fold(seed, FOLDS)
        rng = np.random.default_rng([seed, 1])
        some = np.sort(rng.permutation(len(weight))[:MOST_ROWS])
        matched = np.zeros((len(RIDGES), 2))
        for number in np.unique(fold):
            learns, asked = some[fold[some] != number], some[fold[some] == number]
            if not learns.size or not asked.size:
                continue
            for place, ridge in enumerate(RIDGES):
                found = self._coefficients(fit, weight, learns, ridge)
                said = self.lifted[asked].double().numpy() @ found[1:] + found[0]
                same = said.argmax(axis=1) == self.log.action[asked]
                share = same / self.log.chance[asked]
                matched[place] += (share.sum(), share @ self.log.loss[asked])
        risk = np.where(
            matched[:, 0] > 0, matched[:, 1] / np.maximum(matched[:, 0], 1e-300), np.inf
        )
        return RIDGES[int(risk.argmin())]

    def _coefficients(
        self, fit: Fitting, weight: Floats, these: Ints, ridge: float, start: Floats | None = None
    ) -> Floats:
        own = weight[these]
        size = float(np.abs(own).mean()) or 1.0
        found = fit(
            self.lifted[these] if len(these) < len(weight) else self.lifted,
            torch.from_numpy(self.log.action[these]),
            torch.from_numpy((own / size).astype(np.float32)),
            self.log.data.n_actions,
            ridge,
            None if start is None else torch.from_numpy(start),
        )
        return np.asarray(found.double().numpy())
