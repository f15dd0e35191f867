"""Stated against observed propensities: pooled, by action, and where a policy's weight lies."""

import numpy as np
import pytest
from evaluation_logs import make_log, softmax, tiny

from etips.errors import DataError
from etips.evaluation import Log, calibration, view
from etips.evaluation.calibration import misplaced_weight


def test_right_propensities_are_calibrated_and_flattened_ones_are_not():
    log, _, _ = make_log(n_stays=2000)
    found = calibration(log)
    assert found.error < 0.02
    assert found.gap == 0
    assert found.n_pairs.sum() == log.n_decisions * 4
    wrong = softmax(np.log(log.propensities) * 0.3)
    rows = np.arange(log.n_decisions)
    flat = Log(
        loss=log.loss,
        action=log.action,
        propensity=wrong[rows, log.action],
        cluster=log.cluster,
        n_actions=4,
        propensities=wrong,
    )
    assert calibration(flat).gap > 0.05
    assert calibration(flat).error > 0.05


def test_calibration_by_hand():
    table = np.array([[0.55, 0.45], [0.55, 0.45], [0.95, 0.05], [0.95, 0.05]])
    log = tiny(propensities=table, propensity=[0.55, 0.55, 0.05, 0.95])
    found = calibration(log)
    assert found.n_pairs.tolist() == [2, 0, 0, 0, 2, 2, 0, 0, 0, 2]
    assert found.observed[[0, 4, 5, 9]].tolist() == [0.5, 0, 1, 0.5]
    assert found.stated[[0, 4, 5, 9]] == pytest.approx([0.05, 0.45, 0.55, 0.95])
    assert found.error == pytest.approx(0.45)
    assert found.gap == 0  # two pairs a bin prove nothing


def test_calibration_needs_every_propensity():
    with pytest.raises(DataError, match=r"^propensities: must be given for every action"):
        calibration(tiny())


def log_of(table, action):
    n = action.size
    return Log(
        loss=np.zeros(n),
        action=action,
        propensity=table[np.arange(n), action],
        cluster=np.arange(n) // 2,
        n_actions=table.shape[1],
        propensities=table,
    )


def test_a_uniform_table_is_calibrated_in_bins_and_not_by_action():
    action = np.random.default_rng(0).choice(10, p=[0.55] + [0.05] * 9, size=3000)
    found = calibration(log_of(np.full((3000, 10), 0.1), action))
    assert found.error < 1e-12  # by construction: all pairs are in one bin
    assert found.action_gap == pytest.approx(1 - 0.1 / 0.55, abs=0.02)
    assert found.by_action.observed == pytest.approx([0.55] + [0.05] * 9, abs=0.02)
    assert found.by_action.stated == pytest.approx(np.full(10, 0.1))
    assert found.excess == pytest.approx(found.log_loss - found.frequency_log_loss)
    assert found.log_loss == pytest.approx(np.log(10))
    assert found.excess > 0.3


def test_frequencies_and_true_propensities_leave_no_gap_by_action():
    log, _, _ = make_log(n_stays=1500)
    frequency = np.bincount(log.action, minlength=4) / log.n_decisions
    plain = np.tile(frequency, (log.n_decisions, 1))
    for found in (calibration(log), calibration(log_of(plain, log.action))):
        assert found.action_gap == 0
        assert found.excess == 0
    assert calibration(log).log_loss < calibration(log).frequency_log_loss


def test_weight_on_the_wrong_patients_is_noticed_though_the_mean_is_right():
    """Stated with the sign of the feature turned round: every action's share is still right."""
    log, _, feature = make_log(n_stays=3000, per_stay=1)
    turned = softmax(np.outer(-feature, np.linspace(-1, 1, 4)))
    always = np.tile([1.0, 0, 0, 0], (log.n_decisions, 1))
    wrong = log_of(turned, log.action)
    assert misplaced_weight(wrong, view(wrong, always)) > 0.2
    assert misplaced_weight(log, view(log, always)) == 0
    silent = np.ones(log.n_decisions, dtype=bool)
    assert misplaced_weight(wrong, view(wrong, always, silent)) == 0
