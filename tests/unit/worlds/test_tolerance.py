"""Tolerance: exact values of whole stays, and a log that agrees with them."""

import itertools

import numpy as np
import pytest

from etips.errors import DataError, SettingError
from etips.worlds.tolerance import Tolerance

TRIAL = Tolerance(overlap=1.0)
TINY = Tolerance(n_visits=3, n_levels=2)


def by_hand(world, policy, outcome):
    """Expected outcome by a sum over every course that a stay can take."""
    levels, top = world.n_levels, world.n_levels - 1
    tables, total = world._tables, 0.0

    def moves(state, action):
        rest, tolerance = divmod(state, levels)
        phenotype, severity = divmod(rest, levels)
        worse, better = tables.sicker[state, action], tables.better[state, action]
        more, less = tables.more[action], tables.less[action]
        for by, p in ((-1, better), (0, 1 - better - worse), (1, worse)):
            for risen, q in ((-1, less), (0, 1 - less - more), (1, more)):
                ends = min(max(severity + by, 0), top), min(max(tolerance + risen, 0), top)
                yield (phenotype * levels + ends[0]) * levels + ends[1], p * q

    def follow(state, visit, chance):
        nonlocal total
        last = visit == world.n_visits - 1
        for action in range(world.n_actions):
            here = chance * policy[state, action]
            if here == 0:
                continue
            if outcome == "sum" or last:
                total += here * tables.loss[state, action]
            if not last:
                for following, p in moves(state, action):
                    if p > 0:
                        follow(following, visit + 1, here * p)

    for state in np.flatnonzero(tables.start):
        follow(int(state), 0, tables.start[state])
    return total


def random_table(world, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(world.n_actions), world.n_states)


@pytest.mark.parametrize("outcome", ["sum", "last"])
def test_the_risk_of_a_stay_is_the_sum_over_every_course_it_can_take(outcome):
    for policy in (random_table(TINY), TINY.constant_table(4)):
        found = TINY.stay_risk(policy, outcome=outcome)
        assert found == pytest.approx(by_hand(TINY, policy, outcome), abs=1e-12)


@pytest.mark.parametrize("outcome", ["sum", "last"])
def test_no_policy_is_better_than_the_best(outcome):
    best = TINY.stay_risk(TINY.best_table(outcome), outcome=outcome)
    tables = [random_table(TINY, seed) for seed in range(20)]
    tables += [TINY.constant_table(action) for action in range(5)]
    tables += [TINY.greedy_table(), TINY.logging_table()]
    assert all(TINY.stay_risk(table, outcome=outcome) > best for table in tables)


def test_what_is_better_for_one_decision_is_worse_for_the_stay():
    """The figures of docs/worlds.md."""
    strong, logged = TRIAL.constant_table(4), TRIAL.logging_table()
    assert TRIAL.decision_risk(strong) == pytest.approx(0.1481, abs=6e-5)
    assert TRIAL.decision_risk(logged) == pytest.approx(0.2769, abs=6e-5)
    assert TRIAL.stay_risk(strong) == pytest.approx(2.8628, abs=6e-5)
    assert TRIAL.stay_risk(logged) == pytest.approx(2.2156, abs=6e-5)
    assert TRIAL.stay_risk(TRIAL.greedy_table()) == pytest.approx(2.6025, abs=6e-5)
    assert TRIAL.stay_risk(TRIAL.best_table()) == pytest.approx(1.3883, abs=6e-5)


def test_the_same_holds_in_the_clinicians_log_and_for_the_last_loss():
    world = Tolerance()
    strong, logged = world.constant_table(4), world.logging_table()
    assert world.decision_risk(strong) < world.decision_risk(logged) - 0.1
    assert world.stay_risk(strong) > world.stay_risk(logged) + 0.8
    assert world.stay_risk(strong, outcome="last") > world.stay_risk(logged, outcome="last") + 0.1


def test_without_buildup_the_best_for_now_is_the_best_for_the_stay():
    world = Tolerance(buildup=0.0)
    best = world.stay_risk(world.best_table())
    assert world.stay_risk(world.greedy_table()) == pytest.approx(best, abs=1e-12)


def test_a_log_reads_as_the_clinicians_treat_and_agrees_with_the_exact_risks():
    # 16,000 decisions in 2,000 stays: standard error of the mean loss about 0.004.
    world = Tolerance()
    log = world.log(2_000, seed=3)
    assert (log.n_stays, log.n_decisions, log.n_actions, log.lag) == (2_000, 16_000, 5, 0)
    state = log.truth.code
    assert (log.propensity == world.logging_table()[state, log.action]).all()
    assert log.logged_loss.mean() == pytest.approx(
        world.decision_risk(world.logging_table()), abs=0.016
    )
    for table in (world.constant_table(4), world.greedy_table(), random_table(world)):
        assert log.true_risk(table[state]) == pytest.approx(world.decision_risk(table), abs=0.004)


def test_the_log_shows_what_the_state_is():
    log = Tolerance().log(50, seed=0)
    columns = {name: log.sequence[:, i] for i, name in enumerate(log.schema.sequence)}
    phenotype = (columns["phenotype 1"] == 1).astype(int)
    levels = [np.round(4 * columns[name]).astype(int) for name in ("severity", "tolerance")]
    assert (Tolerance().state_of(phenotype, *levels) == log.truth.code).all()


def test_a_noisy_marker_changes_what_is_seen_and_nothing_else():
    plain, noisy = Tolerance().log(300, seed=1), Tolerance(noise=0.5).log(300, seed=1)
    assert (plain.truth.code == noisy.truth.code).all()
    assert (plain.action == noisy.action).all()
    differs = [i for i in range(6) if (plain.sequence[:, i] != noisy.sequence[:, i]).any()]
    assert differs == [1]
    error = noisy.sequence[:, 1] - plain.sequence[:, 1]
    assert error.std() == pytest.approx(0.5, abs=0.03)


def test_more_actions_are_more_phenotypes():
    world = Tolerance(n_actions=7, n_levels=3, n_visits=2)
    assert world.schema.actions == (
        *("rest", "mild 0", "mild 1", "mild 2", "mild 3", "moderate", "strong"),
    )
    log = world.log(400, seed=0)
    assert set(log.action) == set(range(7))
    assert log.sequence.shape[1] == 8
    pairs = itertools.product(range(4), range(3), range(3))
    assert sorted(int(world.state_of(*parts)) for parts in pairs) == list(range(world.n_states))


def test_a_seed_names_one_log_and_leaves_global_generators_alone(generators_left_alone):
    with generators_left_alone():
        first, again, other = (Tolerance().log(30, seed=s).action for s in (5, 5, 6))
    assert first.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Tolerance(n_actions=4), "n_actions: must be at least 5"),
        (lambda: Tolerance(n_visits=0), "n_visits: must be at least 1"),
        (lambda: Tolerance(n_levels=1), "n_levels: must be at least 2"),
        (lambda: Tolerance(overlap=1.1), "overlap: must be in"),
        (lambda: Tolerance(buildup=-1), "buildup: must be in"),
        (lambda: Tolerance(effect=np.nan), "effect: must be in"),
        (lambda: Tolerance(noise=-1), "noise: must be finite"),
        (lambda: TRIAL.log(0, seed=0), "n_stays: must be at least 1"),
        (lambda: TRIAL.stay_risk(TRIAL.greedy_table(), outcome="mean"), "outcome: must be sum"),
    ],
)
def test_a_setting_outside_its_limits_is_refused(call, words):
    with pytest.raises(SettingError, match=f"^{words}"):
        call()


def test_a_table_that_is_no_policy_is_refused():
    broken = TRIAL.greedy_table().copy()
    broken[[3, 7], 0] = np.nan
    with pytest.raises(DataError, match=r"^policy: .*2 of 50 rows fail, first at row 3\.$"):
        TRIAL.stay_risk(broken)
    with pytest.raises(DataError, match=r"^policy: must have shape \(50, 5\)"):
        TRIAL.decision_risk(broken[:, :3])
