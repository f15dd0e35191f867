"""Propensities for packages that want them: known, or by logistic regression as a user would."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from etips.bench.peers.peer import FLOOR, Lesson
from etips.data.decisions import Floats


def logged_chances(lesson: Lesson) -> Floats:
    """Probability of each logged action, shape (n,)."""
    if lesson.propensity is not None:
        return lesson.propensity
    present = np.unique(lesson.action)
    if present.size < 2:
        return np.ones(lesson.action.size)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=50 if lesson.quick else 300)
        model.fit(lesson.rows, lesson.action)
    likely = model.predict_proba(lesson.rows)
    own = likely[np.arange(lesson.action.size), np.searchsorted(model.classes_, lesson.action)]
    return np.asarray(np.maximum(own, FLOOR), np.float64)
