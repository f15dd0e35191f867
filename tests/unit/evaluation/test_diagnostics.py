"""How far a log can speak about a policy."""

import numpy as np
import pytest
from evaluation_logs import make_log, softmax, tiny

from etips.errors import DataError
from etips.evaluation import (
    Log,
    balance,
    calibration,
    diagnose,
    overlap_by_action,
    view,
    weigh,
)
from etips.evaluation.calibration import misplaced_weight
from etips.evaluation.diagnostics import N_HEAVY, expect_weights
from etips.evaluation.inference.checks import totals


def seen(**other):
    """Four decisions of two stays; the policy always takes action 0."""
    log = tiny(**other)
    return log, view(log, np.tile([1.0, 0.0], (4, 1)))


def test_diagnosis_by_hand():
    found = diagnose(*seen(propensity_floor=0.1))  # weights 2, 4, 0, 10
    assert found.matching_factor.risk == 4
    assert found.uniform_factor.risk == pytest.approx((1 + 2 + 1 + 5) / 4)
    assert (found.n_decisions, found.n_clusters, found.n_matched) == (4, 2, 3)
    assert found.effective_sample_size == pytest.approx(16**2 / 120)
    assert found.effective_share == pytest.approx(16**2 / 120 / 4)
    assert found.effective_clusters == pytest.approx(16**2 / 136)
    assert found.effective_events == pytest.approx(16**2 / 136)  # a fair coin has kurtosis 1
    assert found.weighted_events == pytest.approx(1)  # 2 and 0 against 4 and 10: one stay each
    assert found.max_weight == 10
    assert found.heaviest_cluster == 10 / 16
    assert found.clipped_share == 0.25
    assert found.expected is None
    assert found.unsupported is None
    assert found.calibration is None
    assert found.prognosis is None
    assert (found.headline, found.known, found.visible, found.lag) == ("snips", False, False, 0)


def test_overlap_of_all_actions_by_hand():
    table = np.array([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5], [0.005, 0.995]])
    found = diagnose(*seen(propensities=table, propensity=[0.5, 0.25, 0.5, 0.005]))
    assert found.expected.share == pytest.approx(4 / (2 + 4 + 2 + 200))
    assert found.expected.clusters == pytest.approx(16 / (4 + 4 + 1 + 3 + 1 + 199))
    assert found.expected.std_error == pytest.approx(np.sqrt(1 + 3 + 1 + 199) / 4)
    assert found.expected.mean == pytest.approx(1)
    assert found.unsupported == 0.25


def test_true_propensities_are_not_doubted_where_some_actions_are_never_taken():
    """Nobody draws the last two of five actions: even weights then average three fifths, not 1."""
    generator = np.random.default_rng(0)
    table = np.zeros((4000, 5))
    table[:, :3] = generator.dirichlet((3, 3, 3), size=4000)
    action = np.array([generator.choice(5, p=row) for row in table])
    fields = {"loss": np.zeros(4000), "action": action, "cluster": np.arange(4000), "n_actions": 5}
    chance = table[np.arange(4000), action]
    log = Log(**fields, propensity=chance, propensities=table)
    assert diagnose(log, view(log, table)).uniform_factor.risk == pytest.approx(1, abs=0.1)
    unknown = Log(**fields, propensity=chance)
    found = diagnose(unknown, view(unknown, table)).uniform_factor
    assert found.risk == pytest.approx(0.6, abs=0.1)


def test_propensities_raised_to_a_floor_are_not_doubted_for_it():
    generator = np.random.default_rng(1)
    table = np.tile([0.9, 0.06, 0.04], (4000, 1))
    action = generator.choice(3, p=table[0], size=4000)
    raised = np.maximum(table[np.arange(4000), action], 0.1)
    fields = {"loss": np.zeros(4000), "action": action, "cluster": np.arange(4000), "n_actions": 3}
    log = Log(**fields, propensity=raised, propensities=table, propensity_floor=0.1)
    assert diagnose(log, view(log, table)).uniform_factor.risk == pytest.approx(1, abs=0.1)


def test_an_action_that_is_never_taken_has_no_expected_support():
    table = np.array([[0.5, 0.5], [0.25, 0.75], [0.0, 1.0], [0.1, 0.9]])
    found = diagnose(*seen(propensities=table, propensity=[0.5, 0.25, 1.0, 0.1]))
    assert found.expected.share == found.expected.clusters == 0
    assert found.expected.mean == 0.75
    assert found.unsupported == 0.25


def test_what_neither_clinicians_nor_policy_do_does_not_matter():
    table = np.array([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])
    found = diagnose(*seen(propensities=table, propensity=[0.5, 0.25, 0.5, 1.0]))
    assert found.expected.share == pytest.approx(4 / (2 + 4 + 2 + 1))
    assert found.unsupported == 0


def test_events_follow_the_rarer_outcome_and_are_none_for_a_constant_loss():
    log, policy = seen()
    clusters = diagnose(log, policy).effective_clusters
    rare, _ = seen(loss=[1.0, 0.0, 0.0, 0.0])
    variance, fourth = 3 / 16, (0.75**4 + 3 * 0.25**4) / 4
    expected = clusters * variance**2 / fourth
    assert diagnose(rare, policy).effective_events == pytest.approx(expected)
    constant, _ = seen(loss=[1.0, 1.0, 1.0, 1.0])
    assert diagnose(constant, policy).effective_events == 0


def test_a_policy_that_never_matches_is_diagnosed_without_a_warning():
    log, _ = seen(action=[1, 1, 1, 1])
    found = diagnose(log, view(log, np.tile([1.0, 0.0], (4, 1))))
    assert found.effective_sample_size == found.heaviest_cluster == found.n_matched == 0


def test_overlap_by_action_by_hand():
    log, policy = seen()
    found = overlap_by_action(log, policy)
    assert found.n_logged.tolist() == [3, 1]
    assert found.logged_share.tolist() == [0.75, 0.25]
    assert found.policy_share.tolist() == [1, 0]
    assert found.effective_n == pytest.approx([16**2 / 120, 0])


def test_weighting_balances_a_feature_that_the_clinicians_followed():
    generator = np.random.default_rng(0)
    feature = generator.normal(size=9000)
    table = softmax(np.outer(feature, [-0.5, 0.5]))
    action = (generator.random(9000) > table[:, 0]).astype(int)
    log = Log(
        loss=np.zeros(9000),
        action=action,
        propensity=table[np.arange(9000), action],
        cluster=np.arange(9000),
        n_actions=2,
    )
    always = np.tile([1.0, 0.0], (9000, 1))
    features = np.column_stack([feature, feature**2, np.ones(feature.size)])
    before, after = balance(log, view(log, always), features)
    assert before.shape == after.shape == (3,)
    assert abs(before[0]) > 0.3
    assert np.abs(after[:2]).max() < 0.05
    assert before[2] == after[2] == 0


def expect(policy, table, cluster=None, *, floor=0.0, abstains=None):
    """With the likeliest action taken everywhere, which no expectation depends on."""
    action = table.argmax(axis=1)
    chance = np.maximum(table.max(axis=1), floor)
    cluster = np.arange(len(table)) if cluster is None else cluster
    log = Log(
        np.zeros(len(table)), action, chance, cluster, table.shape[1],
        propensities=table, propensity_floor=floor,
    )  # fmt: skip
    return expect_weights(log, view(log, policy, abstains))


def test_moments_are_those_of_weights_drawn_again_and_again():
    generator = np.random.default_rng(0)
    table, policy = generator.dirichlet((2, 2, 2), 60), generator.dirichlet((1, 1, 1), 60)
    cluster = np.arange(60) // 3
    found = expect(policy, table, cluster)
    means, squares = [], []
    for _ in range(4000):
        action = (generator.random(60)[:, None] > table.cumsum(axis=1)).sum(axis=1).clip(max=2)
        weight = weigh(policy, action, table[np.arange(60), action])
        means.append(weight.mean())
        squares.append((totals(cluster, weight, 20) ** 2).sum())
    assert found.mean == pytest.approx(1)
    assert found.std_error == pytest.approx(np.std(means), rel=0.1)
    assert found.clusters == pytest.approx(60**2 / np.mean(squares), rel=0.1)


def test_a_floor_takes_weight_from_rare_choices():
    table = np.tile([0.005, 0.995], (100, 1))
    always = np.tile([1.0, 0.0], (100, 1))
    assert expect(always, table).mean == pytest.approx(1)
    assert expect(always, table, floor=0.01).mean == pytest.approx(0.5)


def test_where_the_policy_abstains_nothing_is_left_to_chance():
    table = np.tile([0.001, 0.999], (50, 1))
    always = np.tile([1.0, 0.0], (50, 1))
    found = expect(always, table, abstains=np.ones(50, dtype=bool))
    assert (found.mean, found.std_error, found.tail) == (1, 0, 0)
    assert found.clusters == pytest.approx(50)


def test_the_tail_is_the_share_of_choices_that_five_decisions_stand_for():
    even, always = np.full((1000, 10), 0.1), np.tile(np.eye(10)[3], (1000, 1))
    found = expect(always, even)  # 100 decisions match: five are a twentieth
    assert found.tail == pytest.approx(N_HEAVY / 100, rel=0.05)
    mixed = even.copy()
    mixed[:100, 3] = 0.01  # a tenth of the choices, and one decision expected there
    mixed[:100, 4] = 0.19
    assert 0.1 < expect(always, mixed).tail < 0.16
    mixed[:100, 3], mixed[:100, 4] = 0.0, 0.2
    found = expect(always, mixed)
    assert found.clusters == 0
    assert found.mean == pytest.approx(0.9)
    assert found.tail > 0.1


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
