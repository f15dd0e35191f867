"""What peers are shown, what they learn from it, and their policy among ours."""

from dataclasses import replace

import numpy as np
import pytest

from etips.bench.contestants import PEERS
from etips.bench.peers.peer import FEWEST, FLOOR, PeerPolicy, logged_chances
from etips.data.history_rows import summarise_history
from etips.errors import DataError
from etips.results.followed_policies import follow
from etips.worlds.clinic import Clinic

WORLD = Clinic(overlap=0.5, n_contexts=60, n_actions=3, effect=0.9)
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


def test_known_ones_stand_and_others_are_fitted():
    known, _ = shown(LOG)
    assert logged_chances(known) is known.propensity
    fitted = logged_chances(replace(known, propensity=None))
    assert (fitted >= FLOOR).all()
    assert np.corrcoef(fitted, known.propensity)[0, 1] > 0.4
    alone = replace(known, propensity=None, action=np.zeros(300, int))
    assert (logged_chances(alone) == 1).all()


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_learns_a_policy_the_same_each_time(name):
    """All but d3rlpy's beat what was done; in a moment of learning those do not."""
    peer = PEERS[name]
    if not peer.installed:
        pytest.skip(f"{peer.package} is not installed: pip install 'etips[peers]'")
    learn = replace(WORLD.log(400, seed=0), propensity=None)
    test = WORLD.log(300, seed=1)
    done, again = (
        PeerPolicy.learned(peer.load(), learn, seed=0, quick=True).predict_proba(test)
        for _ in range(2)
    )
    assert (done == again).all()
    gain = test.true_risk(test.true_logging()) - test.true_risk(done)
    assert gain > (-0.3 if name.startswith("d3rlpy") else 0.1)
