"""econml's policy learners: a doubly robust tree and a forest of them."""

import warnings
from typing import Any

import numpy as np
from econml.policy import DRPolicyForest, DRPolicyTree
from sklearn.linear_model import LassoCV, LogisticRegression

from etips.bench.peers.peer import Choose, Lesson
from etips.data.decisions import Floats, Ints


def teach_tree(lesson: Lesson) -> Choose:
    """Learn one tree."""
    return _teach(lesson, DRPolicyTree, **({"max_depth": 2} if lesson.quick else {}))


def teach_forest(lesson: Lesson) -> Choose:
    """Learn a forest."""
    return _teach(lesson, DRPolicyForest, n_estimators=20 if lesson.quick else 100, n_jobs=1)


def _teach(lesson: Lesson, kind: Any, **settings: Any) -> Choose:  # noqa: ANN401  # of econml
    """Learn from actions that were taken often enough; the others are never chosen."""
    common = lesson.common
    kept = lesson.take(np.isin(lesson.action, common))
    simple = {}
    if lesson.quick:  # what it chooses by itself searches for seconds
        simple = {
            "model_regression": LassoCV(cv=2, alphas=5),
            "model_propensity": LogisticRegression(max_iter=50),
        }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = kind(random_state=lesson.seed, **simple, **settings)
        model.fit(Y=kept.reward, T=np.searchsorted(common, kept.action), X=kept.rows)

    def choose(rows: Floats) -> Ints:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(common[np.asarray(model.predict(rows), np.int64).ravel()])

    return choose
