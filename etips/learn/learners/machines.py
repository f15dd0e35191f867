"""Classification of actions by weighted margins: the hinge of OWL and the smoothed ramp of RWL.

Scores are a line in the rows, or in random waves of them, and sum to zero over the actions.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
import torch
from sklearn.linear_model import Ridge
from torch import Tensor

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number, require_whole
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.learner import Fit
from etips.learn.learners.row_learner import RowLearner, RowLog, descend
from etips.learn.nuisance.outcome import is_share
from etips.models.row_model import lift

ROUNDED = 0.1
"""Width over which the corner of the hinge is rounded, so that there is a slope everywhere."""

CONVEX_STEPS = 40
"""Iterations of the hinge, which is convex."""

MAX_ROUNDS, ROUND_STEPS = 8, 20
"""Difference-of-convex steps at most, and iterations of each convex problem."""

_SETTLED = 1e-3


def fit_hinge(
    rows: Tensor,
    action: Tensor,
    weight: Tensor,
    n_actions: int,
    ridge: float,
    start: Tensor | None = None,
) -> Tensor:
    """Coefficients (1 + d, K) of a weighted multi-class support vector machine.

    The loss is that of Lee, Lin and Wahba (2004), the hinge of every action that was not taken on
    scores that sum to zero: for two actions it is the usual one, and for more it still leads to the
    action of the largest weight where no action has half of it.

    Args:
        rows: Shape (n, d).
        action: Shape (n,).
        weight: Reward over propensity, mean absolute value one, shape (n,); a negative one speaks
            for all other actions instead (Liu et al. 2018).
        n_actions: How many there are.
        ridge: Weight of half the squared coefficients, biases apart.
        start: Coefficients that a part of the rows led to; half the steps are enough from there.
    """
    taken = torch.nn.functional.one_hot(action, n_actions).to(rows.dtype)
    shunned = torch.where(weight[:, None] < 0, taken, 1 - taken) * weight.abs()[:, None]
    least = 1 / max(n_actions - 1, 1)

    def value(coefficients: Tensor) -> Tensor:
        hinge = _rounded(_scores(rows, coefficients) + least)
        risk = (shunned * hinge).sum(1).mean()
        return risk + _ridge(coefficients, ridge)

    steps = CONVEX_STEPS if start is None else CONVEX_STEPS // 2
    return _centred(descend(value, _begin(start, rows, n_actions), steps=steps))


def fit_ramp(
    rows: Tensor,
    action: Tensor,
    residual: Tensor,
    n_actions: int,
    ridge: float,
    start: Tensor | None = None,
) -> Tensor:
    """Coefficients (1 + d, K) of residual weighted learning.

    The smoothed ramp of the margin is a difference of two convex functions, and so is its product
    with a residual of either sign: each round takes the line that touches the second and solves
    what is left, which is convex (Zhou et al. 2017). The margin is the score of the action taken
    less the largest of the others, rounded.

    Args:
        rows: Shape (n, d).
        action: Shape (n,).
        residual: Weighted loss beyond its baseline; negative is good. Mean absolute value one.
        n_actions: How many there are.
        ridge: Weight of half the squared coefficients, biases apart.
        start: Coefficients that a part of the rows led to; a quarter of the rounds follows.
    """
    good, size = residual < 0, residual.abs()
    upper, lower = torch.where(good, 1.0, 0.0), torch.where(good, 0.0, 1.0)
    coefficients, before = _begin(start, rows, n_actions), math.inf
    for _ in range(MAX_ROUNDS if start is None else MAX_ROUNDS // 4):
        slope = _slope(_margin(_scores(rows, coefficients), action), lower).detach()

        def value(place: Tensor, slope: Tensor = slope) -> Tensor:
            margin = _margin(_scores(rows, place), action)
            convex = size * (_half_ramp(margin, upper) - slope * margin)
            return convex.mean() + _ridge(place, ridge)

        coefficients = descend(value, coefficients, steps=ROUND_STEPS)
        margin = _margin(_scores(rows, coefficients), action)
        ramp = _half_ramp(margin, upper) - _half_ramp(margin, lower)
        now = float((size * ramp).mean() + _ridge(coefficients, ridge))
        if before - now < _SETTLED:
            break
        before = now
    return _centred(coefficients)


def draw_waves(
    rows: Tensor, n_waves: int, *, width: float | None, seed: int
) -> tuple[Floats, Floats]:
    """Directions (m, d) and phases (m,) whose cosines make a Gaussian kernel.

    Args:
        rows: Standardised.
        n_waves: How many.
        width: Of the kernel; the median distance of two rows if left out.
        seed: Of the draw.
    """
    rng = np.random.default_rng(seed)
    if width is None:
        some = rows[torch.from_numpy(rng.integers(0, len(rows), (2, 1000)))].double()
        width = float((some[0] - some[1]).square().sum(1).sqrt().median()) or 1.0
    directions = rng.normal(size=(n_waves, rows.shape[1])) / width
    return directions, rng.uniform(0, 2 * np.pi, n_waves)


def ramp(margin: Tensor) -> Tensor:
    """The smoothed ramp: 2 far below zero, 0 above one."""
    return _half_ramp(margin, torch.ones(())) - _half_ramp(margin, torch.zeros(()))


def _half_ramp(margin: Tensor, corner: Tensor) -> Tensor:
    """Convex: zero above `corner`, a parabola for one unit below it, then a line of slope -2."""
    below = (corner - margin).clamp_min(0.0)
    return torch.where(below < 1, below.square(), 2 * below - 1)


def _slope(margin: Tensor, corner: Tensor) -> Tensor:
    """Derivative of `_half_ramp`."""
    return -2 * (corner - margin).clamp(0.0, 1.0)


def _margin(scores: Tensor, action: Tensor) -> Tensor:
    """Score of the action less a smooth largest of the others, half of it: +-f for two actions."""
    taken = scores.gather(1, action[:, None])
    if scores.shape[1] == 1:
        return taken[:, 0]
    others = scores.scatter(1, action[:, None], -torch.inf)
    best = ROUNDED * torch.logsumexp(others / ROUNDED, dim=1)
    return (taken[:, 0] - best) / 2


def _scores(rows: Tensor, coefficients: Tensor) -> Tensor:
    centred = _centred(coefficients)
    return torch.addmm(centred[0], rows, centred[1:])


def _centred(coefficients: Tensor) -> Tensor:
    return coefficients - coefficients.mean(1, keepdim=True)


def _begin(start: Tensor | None, rows: Tensor, n_actions: int) -> Tensor:
    if start is not None:
        return start.to(rows.dtype)
    return torch.zeros(rows.shape[1] + 1, n_actions, dtype=rows.dtype)


def _ridge(coefficients: Tensor, ridge: float) -> Tensor:
    return 0.5 * ridge * coefficients[1:].square().sum()


def _rounded(values: Tensor) -> Tensor:
    """The positive part, with its corner rounded."""
    inside = (values + ROUNDED / 2).clamp(0.0, ROUNDED)
    return inside.square() / (2 * ROUNDED) + (values - ROUNDED / 2).clamp_min(0.0)


Kernel = Literal["linear", "rbf"]
"""What scores are made of: a line in the summary, or a Gaussian kernel."""

RIDGES = (1e-3, 1e-2, 1e-1, 1.0)
"""Strengths of the ridge that cross-validation chooses from."""

MAX_RANKING_ROWS = 6_000
"""Cross-validation looks at no more decisions than this: it only has to rank four strengths."""

FIRST_ROWS = 20_000
"""Of more than twice as many decisions, so many are learned from first: what they lead to is where
all of them start."""

RANKING_FOLDS = 3

WAVES = 300
"""Cosines of the Gaussian kernel."""

BASELINE_RIDGE = 1.0
"""Weight of half the squared coefficients of the baseline, in decisions."""


@dataclass(kw_only=True, eq=False)
class MarginLearner(RowLearner):
    """A machine that classifies actions by weighted margins.

    Args:
        kernel: "linear" in the summary of the history, or "rbf".
        ridge: Weight of the squared coefficients; by cross-validation if left out.
        n_waves: Random waves that stand for the Gaussian kernel (Rahimi and Recht 2007), so that
            no patient's row is kept.
        propensities: "estimated" by a logistic regression on the summary, or "known".
        support: As in `RowLearner`, like the rest.
        clip: Likewise.
        seed: Of folds and waves.
    """

    kernel: Kernel = "linear"
    ridge: float | None = None
    n_waves: int = WAVES

    _fit_margins: ClassVar[Callable[..., Tensor]]

    @abstractmethod
    def _weights(self, log: RowLog) -> Floats:
        """What each decision counts for, or against, the action taken, shape (n,)."""

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:  # noqa: ARG002
        self._check()
        log = self._read(stays)
        weight = self._weights(log) / log.chance
        if self.kernel == "linear" or not log.rows.shape[1]:
            model = log.model(-self._fit_scores(log, log.rows, weight))
        else:
            basis, phase = draw_waves(log.rows, self.n_waves, width=None, seed=self.seed)
            lifted = lift(log.rows.numpy(), basis.astype(np.float32), phase.astype(np.float32))
            scores = self._fit_scores(log, torch.from_numpy(lifted.astype(np.float32)), weight)
            model = log.model(-scores, form="waves", basis=basis, phase=phase)
        return log.fit("least amount", model, support=self.support)

    def _fit_scores(self, log: RowLog, rows: Tensor, weight: Floats) -> Floats:
        """Coefficients of the scores, shape (1 + m, K)."""
        ridge = self._choose_ridge(log, rows, weight) if self.ridge is None else self.ridge
        every = np.arange(len(weight))
        if len(every) <= 2 * FIRST_ROWS:
            return self._coefficients(log, rows, weight, every, ridge)
        some = np.sort(np.random.default_rng([self.seed, 2]).permutation(every)[:FIRST_ROWS])
        start = self._coefficients(log, rows, weight, some, ridge)
        return self._coefficients(log, rows, weight, every, ridge, start)

    def _choose_ridge(self, log: RowLog, rows: Tensor, weight: Floats) -> float:
        """The ridge of least self-normalised risk on held-out patients."""
        fold = log.fold(self.seed, RANKING_FOLDS)
        rng = np.random.default_rng([self.seed, 1])
        some = np.sort(rng.permutation(len(weight))[:MAX_RANKING_ROWS])
        matched = np.zeros((len(RIDGES), 2))
        for number in np.unique(fold):
            learns, asked = some[fold[some] != number], some[fold[some] == number]
            if not learns.size or not asked.size:
                continue
            for place, ridge in enumerate(RIDGES):
                scores = self._coefficients(log, rows, weight, learns, ridge)
                best = (rows[asked].double().numpy() @ scores[1:] + scores[0]).argmax(axis=1)
                share = (best == log.action[asked]) / log.chance[asked]
                matched[place] += (share.sum(), share @ log.loss[asked])
        total, loss = matched.T
        return RIDGES[int(np.where(total > 0, loss / np.maximum(total, 1e-300), np.inf).argmin())]

    def _coefficients(
        self,
        log: RowLog,
        rows: Tensor,
        weight: Floats,
        these: Ints,
        ridge: float,
        start: Floats | None = None,
    ) -> Floats:
        size = float(np.abs(weight[these]).mean()) or 1.0
        coefficients = self._fit_margins(
            rows[these] if len(these) < len(weight) else rows,
            torch.from_numpy(log.action[these]),
            torch.from_numpy((weight[these] / size).astype(np.float32)),
            log.data.n_actions,
            ridge,
            None if start is None else torch.from_numpy(start),
        )
        return np.asarray(coefficients.double().numpy())

    def _check(self) -> None:
        if self.kernel not in get_args(Kernel):
            raise SettingError("kernel", "must be linear or rbf")
        if self.ridge is not None:
            require_number("ridge", self.ridge)
            if not 0 < self.ridge < np.inf:
                raise SettingError("ridge", "must be above zero")
        require_whole("n_waves", self.n_waves, least=1)


@dataclass(kw_only=True, eq=False)
class OWL(MarginLearner):
    """Outcome weighted learning (Zhao et al. 2012).

    A support vector machine classifies which action was taken, each decision weighted by its reward
    over its propensity, so that actions that did well count. The reward is 1 less the loss where
    losses lie in [0, 1], and minus the loss otherwise, as it comes; a negative one speaks for the
    other actions instead (Liu et al. 2018). A constant added to every loss therefore hides their
    differences, and the machine learns what was done instead of what did well: see `RWL`.

    Args:
        reward_from: What losses are taken off; 1 or 0, as above, if left out.
    """

    reward_from: float | None = None

    _fit_margins: ClassVar[Callable[..., Tensor]] = staticmethod(fit_hinge)

    def _weights(self, log: RowLog) -> Floats:
        start = 1.0 if is_share(log.data) else 0.0
        return (start if self.reward_from is None else float(self.reward_from)) - log.loss

    def _check(self) -> None:
        super()._check()
        if self.reward_from is not None:
            require_number("reward_from", self.reward_from)
            if not np.isfinite(self.reward_from):
                raise SettingError("reward_from", "must be finite")


@dataclass(kw_only=True, eq=False)
class RWL(MarginLearner):
    """Residual weighted learning (Zhou et al. 2017).

    A regression of the loss on the summary alone, without the action, is the baseline. Decisions
    are weighted by what their loss has beyond it over the propensity: less than expected speaks for
    the action taken, more against it. The penalty of a margin is a smoothed ramp, bounded so that
    one decision cannot rule, and is minimised by steps of convex problems. A constant added to the
    loss goes into the baseline and changes nothing, which is where `OWL` suffers.
    """

    _fit_margins: ClassVar[Callable[..., Tensor]] = staticmethod(fit_ramp)

    def _weights(self, log: RowLog) -> Floats:
        """The loss beyond a weighted regression in which every action is taken alike."""
        model = Ridge(alpha=BASELINE_RIDGE)
        rows, weight = log.rows.double().numpy(), 1 / log.chance
        if not rows.shape[1]:
            return log.loss - np.average(log.loss, weights=weight)
        model.fit(rows, log.loss, sample_weight=weight / weight.mean())
        return np.asarray(log.loss - model.predict(rows))
