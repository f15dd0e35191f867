"""Open Bandit Pipeline: its inverse-propensity learner over a logistic regression."""

import warnings

import numpy as np
from obp.policy import IPWLearner
from sklearn.linear_model import LogisticRegression

from etips.bench.peers.peer import Choose, Lesson, logged_chances
from etips.data.decisions import Floats, Ints


def teach(lesson: Lesson) -> Choose:
    """Learn a classifier of the action taken, weighted by reward over propensity."""
    base = LogisticRegression(max_iter=50 if lesson.quick else 300)
    model = IPWLearner(n_actions=lesson.n_actions, base_classifier=base)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(
            context=lesson.rows,
            action=lesson.action,
            reward=lesson.reward,
            pscore=logged_chances(lesson),
        )

    def choose(rows: Floats) -> Ints:
        said = model.predict(context=rows)[:, :, 0]
        return np.asarray(said.argmax(axis=1))

    return choose
