"""Multinomial logistic regression: which action was taken, given a row."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import log_softmax

from etips.data.decisions import Floats, Ints

RIDGE = 1.0
"""Weight of half the squared coefficients, in decisions: that of scikit-learn's C=1."""

STEPS = 60
"""Iterations of L-BFGS at most. SciPy's: torch's would import a compiler, which takes 2 s."""


def fit_softmax(rows: ArrayLike, action: Ints, n_actions: int, *, ridge: float = RIDGE) -> Floats:
    """Coefficients of each action's logit, shape (1 + d, n_actions); the first row is the bias.

    They start at the frequencies of the actions, so that what rows do not tell stays as it is.

    Args:
        rows: Standardised, shape (n, d).
        action: Shape (n,).
        n_actions: How many there are.
        ridge: Weight of half the squared coefficients, biases apart.
    """
    rows = np.asarray(rows, np.float64)
    n, width = rows.shape
    counts = np.bincount(action, minlength=n_actions) + 0.5
    start = np.zeros((width + 1, n_actions))
    start[0] = np.log(counts / counts.sum())
    if not width:
        return start
    place = np.arange(n)

    def risk(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(start.shape)
        log_chance = log_softmax(weights[0] + rows @ weights[1:], axis=1)
        error = np.exp(log_chance)
        error[place, action] -= 1.0
        slope = np.vstack([error.sum(axis=0), rows.T @ error + ridge * weights[1:]]) / n
        value = ridge / (2 * n) * (weights[1:] ** 2).sum() - log_chance[place, action].mean()
        return float(value), slope.ravel()

    found = minimize(risk, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS})
    return np.asarray(found.x.reshape(start.shape))
