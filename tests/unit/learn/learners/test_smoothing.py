"""Objectives published since the paper as learners: learned, resumed, nonsense refused."""

import numpy as np
import pytest
from small_worlds import CLEAR, gain_in_a_clear_world, small, training

from etips.errors import SettingError
from etips.learn import (
    BetaIPS,
    ExponentialSmoothing,
    LogSmoothing,
    LogSumExp,
    Pessimistic,
    WeightedLikelihood,
)
from etips.learn.learners.weighted import StrengthLearner
from etips.models.encoders.gru import GRU
from etips.runs.run import Run

LEARNERS = (
    BetaIPS,
    ExponentialSmoothing,
    LogSmoothing,
    LogSumExp,
    Pessimistic,
    WeightedLikelihood,
)


@pytest.mark.parametrize("kind", [BetaIPS, LogSumExp, Pessimistic])
def test_they_beat_the_clinicians_of_a_clear_world(kind):
    learner = kind(encoder=GRU(8), training=training(10, 2), kl=0.005)
    assert gain_in_a_clear_world(learner) > 0.03


@pytest.mark.parametrize("kind", LEARNERS)
def test_the_path_names_the_form_and_every_strength(kind):
    learner = kind(**small()).fit(CLEAR.log(40, seed=0))
    assert {c.form for c in learner.path_} == {learner.variants(0.5)[0].form}
    if isinstance(learner, StrengthLearner):
        assert [c.strength for c in learner.path_] == list(learner.strengths)


class StoppedError(Exception):
    """In place of a kill."""


@pytest.mark.parametrize("kind", [BetaIPS, LogSumExp])
def test_a_run_that_was_stopped_ends_with_the_same_bytes(kind, tmp_path):
    log, found = CLEAR.log(60, seed=0), []

    def stop(standing):
        if standing.matching_factor is not None and standing.epoch == 2:
            raise StoppedError

    for folder in ("whole", "stopped"):
        with Run(tmp_path / folder, "x" * 64, every=0) as run:
            learner = kind(**small(training=training(4), support=0.0))
            if folder == "stopped":
                with pytest.raises(StoppedError):
                    learner.fit(log, run=run, report=stop)
        with Run(tmp_path / folder, "x" * 64, every=0) as run:
            learner = kind(**small(training=training(4), support=0.0))
            found.append(learner.fit(log, run=run).predict_proba(log))
    assert np.array_equal(*found)


@pytest.mark.parametrize("some", [(), (0.0,), (-1.0,), (float("nan"),), (float("inf"),), 0.5])
def test_strengths_are_some_numbers_above_zero(some):
    with pytest.raises(SettingError, match=r"^strengths: must hold at least one, all of them"):
        LogSumExp(**small(), strengths=some).fit(CLEAR.log(20, seed=0))


def test_a_power_is_at_most_one():
    with pytest.raises(SettingError, match=r"^strengths: .* above 0, at most 1\."):
        ExponentialSmoothing(**small(), strengths=(1.1,)).fit(CLEAR.log(20, seed=0))
