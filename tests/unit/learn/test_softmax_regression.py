"""Multinomial logistic regression."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from etips.learn.softmax_regression import fit_softmax


def chances(rows, coefficients):
    logits = rows @ coefficients[1:] + coefficients[0]
    return torch.from_numpy(logits).softmax(1).numpy()


def test_it_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 3)).astype(np.float32)
    logits = rows @ rng.normal(size=(3, 3))
    action = (logits + rng.gumbel(size=(500, 3))).argmax(axis=1)
    found = fit_softmax(torch.from_numpy(rows), action, 3)
    theirs = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(rows, action)
    assert chances(rows, found) == pytest.approx(theirs.predict_proba(rows), abs=2e-3)


def test_without_columns_it_says_the_frequencies():
    found = fit_softmax(torch.zeros(10, 0), np.array([0] * 7 + [1] * 3), 3)
    assert chances(np.zeros((1, 0)), found)[0] == pytest.approx(
        [7.5 / 11.5, 3.5 / 11.5, 0.5 / 11.5]
    )
