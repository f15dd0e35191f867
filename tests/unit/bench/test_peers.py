"""Who takes part in a bench, what peers are shown, and their policy among ours."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from etips.bench.bench_run import all_contestants, choose_contestants
from etips.bench.peers import FLOOR, MIN_DECISIONS, PEERS, PeerPolicy
from etips.data.history_rows import summarise_history
from etips.errors import DataError, SettingError
from etips.learn.learners.catalogue import METHODS
from etips.results.followed_policies import follow
from etips.worlds.clinic import Clinic


def test_every_method_of_the_catalogue_takes_part_by_itself():
    assert [own.name for own in choose_contestants(None, peers=False)] == list(METHODS)
    assert set(all_contestants()) == {*METHODS, *PEERS}
    assert set(METHODS).isdisjoint(PEERS)


def test_who_is_told_the_propensities_is_not_ranked_with_the_others():
    groups = {name: own.group for name, own in all_contestants().items()}
    assert (groups["etips"], groups["owl"]) == ("ours", "ours")
    assert (groups["tips"], groups["ips"]) == ("told", "told")
    assert {groups[name] for name in ("random", "most-frequent", "predictive")} == {"simple"}
    assert {groups[name] for name in PEERS} == {"peer"}


def test_unknown_names_and_peers_that_are_not_there_are_refused():
    with pytest.raises(SettingError, match="--methods: must be some of"):
        choose_contestants(["etips", "magic"], peers=False)
    absent = {name for name, own in PEERS.items() if not own.installed}
    for name in absent:
        with pytest.raises(SettingError, match="is not installed"):
            choose_contestants([name], peers=False)
    asked = {own.name for own in choose_contestants(["etips"], peers=True)}
    assert asked == {"etips", *PEERS} - absent


def test_the_document_names_every_peer():
    text = (Path(__file__).parents[3] / "docs" / "bench" / "index.md").read_text()
    assert [name for name in PEERS if f"`{name}`" not in text] == []


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
    few = np.where(np.arange(300) < MIN_DECISIONS - 1, 4, lesson.action % 2)
    assert replace(lesson, action=few).common.tolist() == [0, 1]


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
    assert known.logged_chances() is known.propensity
    fitted = replace(known, propensity=None).logged_chances()
    assert (fitted >= FLOOR).all()
    assert np.corrcoef(fitted, known.propensity)[0, 1] > 0.4
    alone = replace(known, propensity=None, action=np.zeros(300, int))
    assert (alone.logged_chances() == 1).all()


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_learns_a_policy_the_same_each_time(name):
    """All but d3rlpy's beat what was done; in a moment of learning those do not."""
    peer = PEERS[name]
    if not peer.installed:
        pytest.skip(f"{peer.package} is not installed: pip install 'etips[peers]'")
    learn = replace(WORLD.log(400, seed=0), propensity=None)
    test = WORLD.log(300, seed=1)
    done, again = (
        PeerPolicy.learned(peer.teach, learn, seed=0, quick=True).predict_proba(test)
        for _ in range(2)
    )
    assert (done == again).all()
    gain = test.true_risk(test.true_logging()) - test.true_risk(done)
    assert gain > (-0.3 if name.startswith("d3rlpy") else 0.1)
