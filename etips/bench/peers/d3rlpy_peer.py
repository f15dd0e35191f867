"""d3rlpy: discrete CQL and BCQ over the stays as episodes."""

import logging
from typing import Any

import d3rlpy
import numpy as np
import structlog
import torch
from d3rlpy.dataset import MDPDataset
from d3rlpy.logging import NoopAdapterFactory

from etips.bench.peers.peer import Choose, Lesson
from etips.data.decisions import Floats, Ints

STEPS = 10_000
"""Gradient steps: what its own examples take for small tasks."""


def teach_cql(lesson: Lesson) -> Choose:
    """Learn by conservative Q-learning."""
    return _teach(lesson, d3rlpy.algos.DiscreteCQLConfig)


def teach_bcq(lesson: Lesson) -> Choose:
    """Learn by batch-constrained Q-learning."""
    return _teach(lesson, d3rlpy.algos.DiscreteBCQConfig)


def _teach(lesson: Lesson, config: Any) -> Choose:  # noqa: ANN401  # of d3rlpy
    quiet = structlog.make_filtering_bound_logger(logging.ERROR)
    structlog.configure(wrapper_class=quiet)  # it would print every step of its way
    n_steps = 50 if lesson.quick else STEPS
    with torch.random.fork_rng():
        torch.manual_seed(lesson.seed)
        np_state = np.random.get_state()  # noqa: NPY002  # it samples by the global generator
        try:
            np.random.seed(lesson.seed)  # noqa: NPY002
            algorithm = config().create(device=False)
            algorithm.fit(
                _episodes(lesson),
                n_steps=n_steps,
                n_steps_per_epoch=n_steps,
                logger_adapter=NoopAdapterFactory(),
                show_progress=False,
                save_interval=2,  # beyond the one epoch: no model is written
            )
        finally:
            np.random.set_state(np_state)  # noqa: NPY002

    def choose(rows: Floats) -> Ints:
        return np.asarray(algorithm.predict(rows.astype(np.float32)), np.int64)

    return choose


def _episodes(lesson: Lesson) -> MDPDataset:
    return MDPDataset(
        observations=lesson.rows.astype(np.float32),
        actions=lesson.action.astype(np.int64)[:, None],
        rewards=-lesson.loss.astype(np.float32)[:, None],
        terminals=lesson.last.astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE,
        action_size=lesson.n_actions,
    )
