"""Classification of actions by weighted margins: the hinge of OWL and the smoothed ramp of RWL.

Scores are a line in the rows, or in random waves of them, and sum to zero over the actions.
"""

import math

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Floats
from etips.learn.tabular.descent import descend

ROUNDED = 0.1
"""Width over which the corner of the hinge is rounded, so that there is a slope everywhere."""

CONVEX_STEPS = 40
"""Iterations of the hinge, which is convex."""

ROUNDS, ROUND_STEPS = 8, 20
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
    for _ in range(ROUNDS if start is None else ROUNDS // 4):
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
