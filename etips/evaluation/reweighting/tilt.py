"""Propensities tilted by functions of what is visible: p'(a) in proportion to p(a) exp(theta_a f).

Theta has the largest likelihood under a ridge that draws it to 0, rare actions the most. How strong
the ridge is for a function is learned from how much all actions make of it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from etips.evaluation.inference.checks import Floats, Ints
from etips.evaluation.inference.row_totals import row_maxima, row_sums

LEAST = 1e-12  # of a propensity before its logarithm is taken
MOST_STEPS = 60
ENOUGH = 2e-5  # slope at which the fit has arrived
N_ROUNDS = 3  # of fitting theta and learning the ridge; five gave the same
FIRST_WIDTH = 0.3  # standard deviation of theta that the first round expects
NARROWEST, WIDEST = 3e-3, 2.0


def log_table(propensities: Floats) -> Floats:
    """Logarithms of a table of propensities, finite where it holds zeros."""
    return np.log(np.maximum(propensities, LEAST))


def tilted(log_propensities: Floats, functions: Floats, theta: Floats) -> Floats:
    """The tilted propensities, shape (n, n_actions).

    Args:
        log_propensities: Shape (n, n_actions).
        functions: Shape (n, q).
        theta: Shape (q, n_actions).
    """
    logits = functions @ theta
    logits += log_propensities
    return normalised(logits)


def normalised(logits: Floats) -> Floats:
    """Probabilities in proportion to the exponentials of `logits`, which they overwrite."""
    logits -= row_maxima(logits)
    np.exp(logits, out=logits)
    logits /= row_sums(logits)
    return logits


def fit_tilt(
    log_propensities: Floats, functions: Floats, action: Ints, *, enough: float = ENOUGH
) -> Floats:
    """Theta, shape (q, n_actions), with a ridge that is learned function by function.

    Functions that no action makes anything of are shrunk away, those that many do are hardly
    shrunk (MacKay's update of the width of each function's theta, with the curvature of mean
    propensities).

    Args:
        log_propensities: Shape (n, n_actions).
        functions: In units of their spread, 1 among them, shape (q,).
        action: Taken, shape (n,).
        enough: Slope at which the fit has arrived.
    """
    n, q = functions.shape
    likelihood = _Likelihood.of(log_propensities, functions, action)
    square = np.full(q, FIRST_WIDTH**2)
    theta = np.zeros((q, log_propensities.shape[1]))
    for left in reversed(range(N_ROUNDS)):
        ridge = 1 / (n * square)
        theta = likelihood.climb(ridge, theta, enough)
        if left:
            inverse = np.linalg.inv(n * likelihood.curve + np.diag(1 / square))
            free = 1 - np.diagonal(inverse, axis1=1, axis2=2).T / square[:, None]  # (q, n_actions)
            square = (theta**2).sum(axis=1) / np.maximum(free.sum(axis=1), 1e-3)
            square = np.clip(square, NARROWEST**2, WIDEST**2)
    return theta


def fit_ridge(
    log_propensities: Floats,
    functions: Floats,
    action: Ints,
    *,
    ridge: Floats,
    start: Floats,
    enough: float = ENOUGH,
) -> Floats:
    """The theta of largest penalised likelihood, shape (q, n_actions), by L-BFGS.

    Args:
        log_propensities: Shape (n, n_actions).
        functions: Shape (n, q).
        action: Taken, shape (n,).
        ridge: Half of it times theta squared is added to minus the mean log-likelihood, (q,).
        start: Where to begin.
        enough: Slope at which the fit has arrived.
    """
    return _Likelihood.of(log_propensities, functions, action).climb(ridge, start, enough)


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """Of the logged actions, as a function of theta.

    Args:
        by_action: Log-propensities, each action's together: quicker by half, shape (n_actions, n).
        functions: Shape (n, q).
        logged: Place of each logged action in a table by action, counted through, shape (n,).
        curve: About the second derivative of minus its mean logarithm, shape (n_actions, q, q).
    """

    by_action: Floats
    functions: Floats
    logged: Ints
    curve: Floats

    @classmethod
    def of(cls, log_propensities: Floats, functions: Floats, action: Ints) -> "_Likelihood":
        n = len(action)
        by_action = np.ascontiguousarray(log_propensities.T)
        likely = np.exp(log_propensities).mean(axis=0)
        square = functions.T @ functions / n
        curve = np.asarray(square[None] * (likely * (1 - likely))[:, None, None])
        return cls(by_action, functions, action * n + np.arange(n), curve)

    def climb(self, ridge: Floats, start: Floats, enough: float) -> Floats:
        """Theta of the largest likelihood under a ridge; see `fit_ridge`."""

        def value_and_slope(theta: Floats) -> tuple[float, Floats]:
            value, slope = self.value_and_slope(theta)
            slope += ridge[:, None] * theta
            return float(value + 0.5 * (ridge[:, None] * theta**2).sum()), slope

        scale = np.linalg.inv(self.curve + np.diag(ridge) + 1e-9 * np.eye(len(ridge)))
        return _descend(value_and_slope, start, np.asarray(scale, np.float64), enough)

    def value_and_slope(self, theta: Floats) -> tuple[float, Floats]:
        """Minus its mean logarithm, and the derivative of that, shape (q, n_actions)."""
        table = theta.T @ self.functions.T
        table += self.by_action
        normalised(table.T)
        cells = table.reshape(-1)
        chance = cells.take(self.logged)
        cells[self.logged] = chance - 1
        value = -np.log(np.maximum(chance, 1e-300)).mean()
        return float(value), self.functions.T @ table.T / chance.size


_Memory = deque[tuple[Floats, Floats, float]]


def _descend(
    value_and_slope: Callable[[Floats], tuple[float, Floats]],
    theta: Floats,
    scale: Floats,
    enough: float,
) -> Floats:
    """L-BFGS from `theta`, its first step scaled action by action, shape (n_actions, q, q)."""
    value, slope = value_and_slope(theta)
    memory: _Memory = deque(maxlen=12)
    for _ in range(MOST_STEPS):
        if np.abs(slope).max() < enough:
            break
        step = -_times_inverse(slope, memory, scale)
        descent = float((step * slope).sum())
        length, worse = 1.0, True
        while worse and length > 1e-6:
            new_value, new_slope = value_and_slope(theta + length * step)
            worse = not new_value <= value + 1e-4 * length * descent
            length = length / 2 if worse else length
        if worse:
            break
        moved, bent = length * step, new_slope - slope
        curvature = float((moved * bent).sum())
        if curvature > 1e-14:
            memory.append((moved, bent, 1 / curvature))
        theta, value, slope = theta + moved, new_value, new_slope
    return theta


def _times_inverse(slope: Floats, memory: _Memory, scale: Floats) -> Floats:
    """The two loops of L-BFGS."""
    direction, shares = slope.copy(), []
    for moved, bent, inverse in reversed(memory):
        share = inverse * float((moved * direction).sum())
        direction -= share * bent
        shares.append(share)
    direction = np.einsum("aqr,ra->qa", scale, direction)
    for (moved, bent, inverse), share in zip(memory, reversed(shares), strict=True):
        direction += (share - inverse * float((bent * direction).sum())) * moved
    return np.asarray(direction)
