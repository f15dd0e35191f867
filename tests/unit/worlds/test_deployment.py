"""Policies at work in a world: agreement with exact values, common luck, and what is refused."""

import numpy as np
import pytest

from etips.errors import DataError, SettingError
from etips.worlds.deployment import deploy, follow, walk
from etips.worlds.draws import generator
from etips.worlds.tolerance import Tolerance

WORLD = Tolerance(n_visits=4, n_levels=3)


def by_table(world, table):
    """A table of states as a policy of histories: the world without noise shows its state."""

    def policy(asked):
        seen = asked.sequence[asked.seen_rows]
        levels = [np.round((world.n_levels - 1) * seen[:, i]).astype(int) for i in (0, 1)]
        return table[world.state_of(seen[:, 2 : world.n_actions - 1].argmax(axis=1), *levels)]

    return policy


def always(action, n_actions=5):
    return lambda asked: np.eye(n_actions)[np.full(asked.n_decisions, action)]


@pytest.mark.parametrize("outcome", ["sum", "last"])
def test_a_deployed_policy_has_the_exact_risk_of_its_table(outcome):
    rng = np.random.default_rng(0)
    for table in (rng.dirichlet(np.ones(5), WORLD.n_states), WORLD.constant_table(4)):
        found = deploy(WORLD, by_table(WORLD, table), n_stays=20_000, seed=1).stay_risk(outcome)
        assert found.n_stays == 20_000
        assert 0 < found.std_error < 0.01
        exact = WORLD.stay_risk(table, outcome=outcome)
        assert abs(found.risk - exact) < 4 * found.std_error


def test_a_row_of_zeros_leaves_the_decision_to_the_clinicians():
    left = deploy(WORLD, lambda asked: np.zeros((asked.n_decisions, 5)), n_stays=500, seed=2)
    same = deploy(WORLD, by_table(WORLD, WORLD.logging_table()), n_stays=500, seed=2)
    assert (left.total == same.total).all()


def test_a_fitted_policy_is_followed_unless_it_abstains():
    class Half:
        def deployed(self, data):
            return always(4)(data), data.sequence[data.seen_rows][:, 2] == 1  # one phenotype

    found = deploy(WORLD, follow(Half()), n_stays=2_000, seed=5).stay_risk()
    table = np.where(
        (np.arange(WORLD.n_states) < WORLD.n_states // 2)[:, None],
        WORLD.logging_table(),
        WORLD.constant_table(4),
    )
    assert abs(found.risk - WORLD.stay_risk(table)) < 4 * found.std_error


def test_two_policies_meet_the_same_patients_and_the_same_luck():
    strong, rest = (deploy(WORLD, always(a), n_stays=4_000, seed=3) for a in (4, 0))
    apart = deploy(WORLD, always(0), n_stays=4_000, seed=4)
    assert (strong.total - rest.total).std() < 0.9 * (strong.total - apart.total).std()
    again = deploy(WORLD, always(4), n_stays=4_000, seed=3)
    assert (again.total == strong.total).all()


def test_each_question_shows_the_whole_history_with_the_actions_taken_and_no_more():
    seen = []

    def policy(asked):
        seen.append(asked)
        return np.eye(5)[(np.arange(asked.n_decisions) + len(seen)) % 5]

    walked = walk(WORLD, policy, n_stays=7, rng=generator(0))
    for step, asked in enumerate(seen):
        assert asked.n_decisions == 7
        assert (asked.decisions().step == step).all()
        steps = asked.sequence.reshape(7, step + 1, -1)
        assert (steps == walked.features[:, : step + 1]).all()
        actions = asked.action.reshape(7, step + 1)
        assert (actions[:, :step] == walked.action[:, :step]).all()
        assert (actions[:, step] == 0).all()  # not taken yet
        assert (walked.action[:, step] == (np.arange(7) + step + 1) % 5).all()


def test_the_seed_alone_decides_and_global_generators_are_left_alone(generators_left_alone):
    with generators_left_alone():
        first, other = (deploy(WORLD, always(3), n_stays=50, seed=s) for s in (0, 1))
    assert first.total.tolist() != other.total.tolist()
    assert (first.lengths == 4).all()


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (lambda asked: np.full((asked.n_decisions, 5), 0.3), "must give probabilities that sum"),
        (lambda asked: np.full((asked.n_decisions, 5), np.nan), "must give probabilities that sum"),
        (lambda asked: np.ones((asked.n_decisions, 1)), "must give one row a decision"),
    ],
)
def test_what_is_no_policy_is_refused(policy, words):
    with pytest.raises(DataError, match=f"^policy: {words}"):
        deploy(WORLD, policy, n_stays=3)


def test_settings_outside_their_limits_are_refused():
    with pytest.raises(SettingError, match="n_stays: must be at least 1"):
        deploy(WORLD, always(0), n_stays=0)
    with pytest.raises(SettingError, match="outcome: must be"):
        deploy(WORLD, always(0), n_stays=2).stay_risk("mean")
