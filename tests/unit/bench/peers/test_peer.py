"""What peers are shown, and their policy among ours."""

from dataclasses import replace

import numpy as np
import pytest

from etips.bench.peers.peer import FEWEST, PeerPolicy
from etips.data.history_summary import summarise_history
from etips.errors import DataError
from etips.results.followed_policies import follow
from etips.worlds.clinic import Clinic

LOG = Clinic(decisions_per_stay=3).log(100, seed=0)


def shown(stays, **more):
    seen = []

    def teach(lesson):
        seen.append(lesson)
        return lambda rows: np.full(len(rows), 2)

    policy = PeerPolicy.learned(teach, stays, seed=5, **more)
    return seen[0], policy


def test_a_lesson_is_the_standardised_summary_with_the_end_of_each_stay():
    lesson, _ = shown(replace(LOG, propensity=None))
    assert lesson.rows.shape == (300, summarise_history(LOG).shape[1])
    assert np.abs(lesson.rows.mean(axis=0)).max() < 1e-6
    assert np.isfinite(lesson.rows).all()
    assert np.flatnonzero(lesson.last).tolist() == list(range(2, 300, 3))
    assert lesson.propensity is None
    assert (lesson.reward >= 0).all()
    known, _ = shown(LOG)
    assert np.array_equal(known.propensity, LOG.logged_propensity)


def test_actions_that_are_too_rare_are_left_out():
    lesson, _ = shown(LOG)
    few = np.where(np.arange(300) < FEWEST - 1, 4, lesson.action % 2)
    assert replace(lesson, action=few).common.tolist() == [0, 1]
    part = lesson.take(lesson.action == 1)
    assert len(part.rows) == len(part.loss) == (lesson.action == 1).sum()


def test_its_policy_is_followed_like_any_other():
    _, policy = shown(LOG)
    deployed = follow(policy, LOG).deployed
    assert (deployed.probabilities.argmax(axis=1) == 2).all()
    assert not deployed.abstained.any()
    odd = replace(policy, choose=lambda rows: np.zeros(3))
    with pytest.raises(DataError, match="one action a decision"):
        odd.predict_proba(LOG)
