"""LightGBM: one regression of the loss an action, then the least."""

import lightgbm
import numpy as np

from etips.bench.peers.peer import Choose, Lesson
from etips.data.decisions import Floats, Ints


def teach(lesson: Lesson) -> Choose:
    """Learn a model of each action that was taken often enough; the others are never chosen."""
    common = lesson.common
    models = []
    for action in common:
        own = lesson.action == action
        model = lightgbm.LGBMRegressor(
            n_estimators=10 if lesson.quick else 100,
            random_state=lesson.seed,
            n_jobs=1,
            verbose=-1,
            deterministic=True,
            force_col_wise=True,
        )
        models.append(model.fit(lesson.rows[own], lesson.loss[own]))

    def choose(rows: Floats) -> Ints:
        predicted = np.stack([model.booster_.predict(rows) for model in models], axis=1)
        return np.asarray(common[predicted.argmin(axis=1)])

    return choose
