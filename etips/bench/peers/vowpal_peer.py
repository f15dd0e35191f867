"""Vowpal Wabbit: a contextual bandit by its doubly robust reduction."""

import numpy as np
import vowpalwabbit

from etips.bench.peers.peer import Choose, Lesson, logged_chances
from etips.data.decisions import Floats, Ints

PASSES = 5
"""Over the decisions, each in another order."""


def teach(lesson: Lesson) -> Choose:
    """Learn linear costs of actions, online."""
    k = lesson.n_actions
    model = vowpalwabbit.Workspace(
        f"--cb {k} --cb_type dr --quiet --random_seed {lesson.seed + 1}", enable_logging=False
    )
    chance, rng = logged_chances(lesson), np.random.default_rng(lesson.seed)
    lines = _lines(lesson.rows)
    for _ in range(1 if lesson.quick else PASSES):
        for place in rng.permutation(len(lines)):
            label = f"{lesson.action[place] + 1}:{lesson.loss[place]:.6g}:{chance[place]:.6g}"
            model.learn(f"{label} |x {lines[place]}")

    def choose(rows: Floats) -> Ints:
        said = [int(model.predict(f"|x {line}")) - 1 for line in _lines(rows)]
        return np.asarray(said, np.int64)

    return choose


def _lines(rows: Floats) -> list[str]:
    """Rows as its text format has them."""
    return [" ".join(f"f{j}:{value:.5g}" for j, value in enumerate(row) if value) for row in rows]
