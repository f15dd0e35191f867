import numpy as np
import pytest
from evaluation_logs import make_log, softmax, tiny

from etips.errors import DataError
from etips.evaluation import (
    Log,
    balance,
    diagnose,
    overlap_by_action,
    view,
)


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
    assert found.largest_shares == pytest.approx((10 / 16, 4 / 16, 2 / 16, 0))
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
    assert found.largest_shares == (0, 0, 0, 0)


def test_overlap_by_action_by_hand():
    log, policy = seen()
    found = overlap_by_action(log, policy)
    assert found.n_logged.tolist() == [3, 1]
    assert found.logged_share.tolist() == [0.75, 0.25]
    assert found.policy_share.tolist() == [1, 0]
    assert found.effective_n == pytest.approx([16**2 / 120, 0])
    assert found.least_propensity.tolist() == [0.1, 0.5]


def test_overlap_of_25_actions_is_laid_out_by_fluid_and_vasopressor():
    log, table, _ = make_log(n_stays=200, n_actions=25)
    found = overlap_by_action(log, view(log, table))
    grid = found.grid()
    assert grid.n_logged.shape == (5, 5)
    assert grid.n_logged[2].tolist() == [(log.action == 5 * 2 + j).sum() for j in range(5)]
    assert grid.least_propensity.shape == (5, 5)
    with pytest.raises(DataError, match=r"^action: must have 5 x 5 levels for this grid\.$"):
        overlap_by_action(*seen()).grid()


def test_an_action_never_taken_has_no_least_propensity():
    log, _ = seen(action=[0, 0, 0, 0])
    assert np.isnan(overlap_by_action(log, view(log, np.full((4, 2), 0.5))).least_propensity[1])


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
