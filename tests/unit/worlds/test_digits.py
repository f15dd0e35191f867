"""The paper's two MNIST tasks: its labels to the last one, few bytes, one decision a sequence."""

import tracemalloc

import numpy as np
import pytest

from etips.errors import SettingError
from etips.worlds import digits
from etips.worlds.bandit import Answers
from etips.worlds.classifier import StoppedLstm
from etips.worlds.shipped import read_shipped


def nearly_right(labelled, *, seed, progress):
    """A trainer that needs no training: the true label with probability 0.64, others alike."""
    progress("thinking", 1.0)
    k = labelled.n_actions
    answers = np.full((labelled.n_decisions, k), 0.36 / (k - 1))
    answers[np.arange(len(answers)), labelled.logged_action] = 0.64
    return Answers(answers, {"logging_model": "oracle", "trainer_seed": str(seed)})


@pytest.fixture(scope="module")
def all_zeros():
    return digits.labelled_zeros()


def test_the_labels_of_zeros_are_the_papers(all_zeros):
    label = all_zeros.logged_action
    assert np.bincount(label).tolist() == [3342, 3299, 3359]
    assert np.bincount(label[:1000]).tolist() == [343, 327, 330]


def test_always_zero_scores_the_papers_direct_method(all_zeros):
    assert (all_zeros.logged_action[:1000] == 0).mean() == 0.343


def test_the_papers_random_policy_on_zeros_is_reproduced(all_zeros):
    drawn = np.random.RandomState(0).randint(3, size=1000)
    assert (all_zeros.logged_action[:1000] == drawn).mean() == 0.363


def test_the_papers_random_policy_on_rows_is_reproduced():
    drawn = np.random.RandomState(0).randint(10, size=7000)
    label = digits.labelled_rows(n=7000).logged_action
    assert round((label == drawn).mean(), 3) == 0.103


def test_the_lengths_of_zeros_are_the_papers(all_zeros):
    lengths = np.diff(all_zeros.offsets)
    assert (lengths.min(), lengths.max()) == (3, 32)
    assert (round(lengths.mean(), 2), round(lengths.std(), 2)) == (19.90, 4.99)


def test_a_sequence_holds_as_many_zeros_as_its_label_and_no_image_twice(all_zeros):
    digit = np.concatenate(read_shipped("mnist.npz", "y_train", "y_test"))
    code = all_zeros.sequence.code
    stay = np.repeat(np.arange(10_000), np.diff(all_zeros.offsets))
    assert (np.bincount(stay, digit[code] == 0) == all_zeros.logged_action).all()
    assert len(np.unique(np.column_stack([stay, code]), axis=0)) == len(code)


def test_ten_thousand_sequences_cost_far_less_than_two_gigabytes():
    digits._mnist.cache_clear()
    tracemalloc.start()
    try:
        data = digits.labelled_zeros()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert data.sequence.nbytes < 60e6
    assert peak < 250e6  # mostly MNIST itself, once as read and once joined


def test_rows_are_the_rows_of_each_image_in_the_official_order():
    (train,) = read_shipped("mnist.npz", "x_train")
    data = digits.labelled_rows(n=3)
    assert data.sequence[:].reshape(3, 28, 28) == pytest.approx(train[:3] / 255)
    assert data.logged_action.tolist() == [5, 0, 4]


@pytest.mark.parametrize(("task", "n_actions"), [(digits.zeros, 3), (digits.rows, 10)])
def test_a_log_has_one_decision_a_sequence_at_its_last_step(task, n_actions):
    log = task(n=200, train=nearly_right)
    assert (log.n_stays, log.n_decisions, log.n_actions, log.lag) == (200, 200, n_actions, 0)
    assert (log.decision_rows == log.offsets[1:] - 1).all()
    elsewhere = np.setdiff1d(np.arange(log.n_steps), log.decision_rows)
    assert (log.action[elsewhere] == -1).all()
    assert np.isnan(log.loss[elsewhere]).all()


@pytest.mark.parametrize("task", [digits.zeros, digits.rows])
def test_a_log_knows_its_truth(task):
    log = task(n=200, train=nearly_right)
    assert log.true_risk(log.true_logging()) == pytest.approx(0.36)
    label = log.true_expected_loss().argmin(axis=1)
    assert (log.logged_loss == (log.logged_action != label)).all()
    assert log.schema.provenance["logging_model"] == "oracle"


def test_a_seed_changes_images_and_actions_but_no_label():
    first, again, other = (digits.zeros(n=50, seed=s, train=nearly_right) for s in (1, 1, 2))
    assert first.sequence.code.tolist() == again.sequence.code.tolist()
    assert first.action.tolist() == again.action.tolist()
    assert first.sequence.code.tolist() != other.sequence.code.tolist()
    assert (first.true_expected_loss() == other.true_expected_loss()).all()


def test_the_first_sequences_are_those_of_the_whole(all_zeros):
    part = digits.labelled_zeros(n=30)
    assert (part.sequence.code == all_zeros.sequence.code[: part.n_steps]).all()
    assert (part.logged_action == all_zeros.logged_action[:30]).all()


@pytest.mark.parametrize("task", [digits.zeros, digits.rows])
def test_a_small_network_logs_either_task_and_says_how_well(task):
    target = 1.3 / (3 if task is digits.zeros else 10)  # a little better than chance
    small = StoppedLstm(target=target, tolerance=0.03, share=0.4, hidden=16, learning_rate=1e-2)
    log = task(n=200, train=small)
    assert abs(float(log.schema.provenance["logging_accuracy"]) - target) <= 0.03
    noted = float(log.schema.provenance["logged_action_accuracy"])
    assert noted == pytest.approx(1 - log.logged_loss.mean(), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("task", [digits.zeros, digits.rows])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_full_tasks_reach_the_band_on_five_percent(task, seed):
    notes = task(seed=seed).schema.provenance
    assert abs(float(notes["logging_accuracy"]) - 0.66) <= 0.01
    assert notes["logging_share"] == "0.05"


@pytest.mark.parametrize("n", [0, 10_001])
def test_a_size_outside_its_limits_is_refused(n):
    with pytest.raises(SettingError, match=r"^n: must be in 1\.\.10000"):
        digits.zeros(n=n, train=nearly_right)
