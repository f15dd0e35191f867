"""Multinomial logistic regression: which action was taken, given a row."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from etips.data.decisions import Floats, Ints
from etips.learn.tabular.descent import descend

RIDGE = 1.0
"""Weight of half the squared coefficients, in decisions: that of scikit-learn's C=1."""

STEPS = 40


def fit_softmax(rows: Tensor, action: Ints, n_actions: int, *, ridge: float = RIDGE) -> Floats:
    """Coefficients of each action's logit, shape (1 + d, n_actions); the first row is the bias.

    They start at the frequencies of the actions, so that what rows do not tell stays as it is.

    Args:
        rows: Standardised, shape (n, d).
        action: Shape (n,).
        n_actions: How many there are.
        ridge: Weight of half the squared coefficients, biases apart.
    """
    counts = np.bincount(action, minlength=n_actions) + 0.5
    start = torch.zeros(rows.shape[1] + 1, n_actions, dtype=rows.dtype)
    start[0] = torch.from_numpy(np.log(counts / counts.sum())).to(rows.dtype)
    if not rows.shape[1]:
        return np.asarray(start.double().numpy())
    taken = torch.from_numpy(action)

    def value(weights: Tensor) -> Tensor:
        logits = torch.addmm(weights[0], rows, weights[1:])
        shrunk = 0.5 * ridge / len(rows) * weights[1:].square().sum()
        return functional.cross_entropy(logits, taken) + shrunk

    return np.asarray(descend(value, start, steps=STEPS).double().numpy())
