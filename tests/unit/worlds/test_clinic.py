"""Clinic: the marginal law is exact, the coin leans as far as Gamma allows, logs agree with it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from etips.errors import DataError, SettingError
from etips.worlds.clinic import Clinic

clinics = st.builds(
    Clinic,
    n_contexts=st.integers(1, 30),
    n_features=st.integers(1, 4),
    n_actions=st.integers(2, 6),
    n_types=st.integers(1, 4),
    overlap=st.floats(0, 1),
    base_risk=st.floats(0.01, 0.99),
    effect=st.floats(0, 1),
    frailty=st.floats(0, 0.99),
    confounding=st.floats(1, 20),
    world=st.integers(0, 1000),
)


def uniform(clinic):
    return np.full((clinic.n_contexts, clinic.n_actions), 1 / clinic.n_actions)


def odds(p):
    return p / (1 - p)


@given(clinics)
def test_frailty_and_coin_together_keep_every_chance_of_loss_inside_zero_and_one(clinic):
    mean = clinic.expected_loss_table()
    frail = clinic.frailty * np.minimum(mean, 1 - mean)
    assert (clinic.loss_given_coin() - frail).min() >= -1e-12
    assert (clinic.loss_given_coin() + frail).max() <= 1 + 1e-12


@given(clinics)
def test_averaging_over_the_coin_gives_the_marginal_law_back(clinic):
    assert clinic.logging_given_coin().mean(axis=0) == pytest.approx(clinic.logging_table())
    assert clinic.loss_given_coin().mean(axis=0) == pytest.approx(clinic.expected_loss_table())


@given(clinics)
def test_the_uniform_policy_has_the_base_risk(clinic):
    assert clinic.true_risk(uniform(clinic)) == pytest.approx(clinic.base_risk, abs=1e-9)


def test_without_effect_every_policy_has_the_base_risk():
    clinic = Clinic(effect=0, base_risk=0.3)
    for policy in (clinic.logging_table(), clinic.best_table(), np.eye(5)[np.full(200, 3)]):
        assert clinic.true_risk(policy) == pytest.approx(0.3)


@given(clinics)
def test_the_coin_moves_the_odds_of_an_action_by_at_most_gamma(clinic):
    ratio = odds(clinic.logging_given_coin()) / odds(clinic.logging_table())
    assert ratio.max() <= clinic.confounding * (1 + 1e-9)
    assert ratio.min() >= 1 / clinic.confounding * (1 - 1e-9)


@given(clinics)
def test_in_every_context_some_odds_move_by_gamma_itself(clinic):
    ratio = odds(clinic.logging_given_coin()) / odds(clinic.logging_table())
    reached = np.exp(np.abs(np.log(ratio)).max(axis=(0, 2)))
    assert reached == pytest.approx(np.full(clinic.n_contexts, clinic.confounding), rel=1e-6)


def test_the_naive_estimate_is_right_without_confounding_and_flattering_with_it():
    for gamma, gap in ((1, 0), (2, -0.02), (5, -0.06)):
        clinic = Clinic(confounding=gamma)
        best = clinic.best_table()
        assert clinic.naive_risk(best) - clinic.true_risk(best) <= gap + 1e-12
        logging = clinic.logging_table()  # its risk is the mean logged loss, which cannot mislead
        assert clinic.naive_risk(logging) == pytest.approx(clinic.true_risk(logging))
    clinic = Clinic(confounding=1)
    assert clinic.naive_risk(best) == pytest.approx(clinic.true_risk(best))


def test_a_null_world_under_confounding_promises_a_gain_that_is_not_there():
    clinic = Clinic(effect=0, confounding=3)
    wanted = np.eye(5)[Clinic(effect=1).expected_loss_table().argmin(axis=1)]
    assert clinic.true_risk(wanted) == pytest.approx(0.5)
    assert clinic.naive_risk(wanted) < 0.48


def test_a_log_holds_what_the_tables_say():
    clinic = Clinic(decisions_per_stay=3, confounding=2)
    log = clinic.log(50, seed=1)
    assert (log.n_stays, log.n_decisions, log.lag, log.n_actions) == (50, 150, 0, 5)
    code = log.truth.code
    assert (log.propensity == clinic.logging_table()[code, log.action]).all()
    assert (log.true_expected_loss() == clinic.expected_loss_table()[code]).all()
    assert (log.true_logging() == clinic.logging_table()[code]).all()
    assert set(np.unique(log.loss)) == {0, 1}
    same = np.unique(np.column_stack([code, log.sequence[:]]), axis=0)
    assert len(same) == len(np.unique(code))  # a context always reads the same


def test_logs_repeat_by_seed_and_leave_global_generators_alone(generators_left_alone):
    with generators_left_alone():
        first, again, other = (Clinic().log(40, seed=s).loss for s in (1, 1, 2))
    assert first.tolist() == again.tolist() != other.tolist()


@settings(max_examples=5)
@given(st.sampled_from([1.0, 4.0]), st.integers(0, 100))
def test_a_long_log_agrees_with_the_exact_laws(gamma, seed):
    clinic = Clinic(confounding=gamma, decisions_per_stay=4, overlap=0.5, n_contexts=20)
    log = clinic.log(25_000, seed=seed)
    code, n = log.truth.code, log.n_steps
    counts = np.zeros((20, 5))
    np.add.at(counts, (code, log.action), 1)
    joint = clinic.context_probabilities()[:, None] * clinic.logging_table()
    # Steps of a stay share its type, so a count varies at most 4 times as if they did not.
    noise = 2 * np.sqrt(joint * (1 - joint) / n)
    assert (np.abs(counts / n - joint) < 5 * noise).all()
    best = clinic.best_table()
    weight = best[code, log.action] / log.propensity
    found, spread = (weight * log.loss).mean(), (weight * log.loss).std() / np.sqrt(n / 4)
    assert found == pytest.approx(clinic.naive_risk(best), abs=5 * spread)
    assert log.loss.mean() == pytest.approx(clinic.true_risk(clinic.logging_table()), abs=0.02)


def within_stay_correlation(clinic):
    log = clinic.log(20_000, seed=0)
    left = log.loss - log.true_expected_loss()[np.arange(log.n_steps), log.action]
    pairs = left.reshape(-1, 2)
    return np.corrcoef(pairs.T)[0, 1]


def test_frailty_ties_the_losses_of_one_stay_together():
    noise = 5 / np.sqrt(20_000)
    assert abs(within_stay_correlation(Clinic(decisions_per_stay=2, frailty=0))) < noise
    assert within_stay_correlation(Clinic(decisions_per_stay=2, frailty=0.8)) > 0.2


def test_a_type_ties_the_contexts_of_one_stay_together():
    def repeats(n_types):
        log = Clinic(decisions_per_stay=2, n_contexts=20, n_types=n_types).log(20_000, seed=0)
        first, second = log.truth.code.reshape(-1, 2).T
        by_chance = (np.bincount(first) / 20_000) @ (np.bincount(second) / 20_000)
        return (first == second).mean() - by_chance

    assert abs(repeats(1)) < 0.015
    assert repeats(6) > 0.03


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"n_contexts": 0}, "n_contexts"),
        ({"n_features": 0}, "n_features"),
        ({"n_types": 0}, "n_types"),
        ({"decisions_per_stay": 0}, "decisions_per_stay"),
        ({"n_actions": 1}, "n_actions"),
        ({"overlap": float("nan")}, "overlap"),
        ({"base_risk": 1.0}, "base_risk"),
        ({"effect": 1.1}, "effect"),
        ({"frailty": 1.0}, "frailty"),
        ({"confounding": 0.9}, "confounding"),
        ({"confounding": float("inf")}, "confounding"),
        ({"world": -1}, "world"),
    ],
)
def test_a_clinic_outside_its_limits_is_refused(given, name):
    with pytest.raises(SettingError, match=f"^{name}: must"):
        Clinic(**given)


def test_a_log_of_no_stays_is_refused():
    with pytest.raises(SettingError, match=r"^n_stays: must be at least 1"):
        Clinic().log(0, seed=0)


def test_a_table_that_is_no_policy_is_refused():
    broken = Clinic().logging_table().copy()
    broken[9] = 0.1
    with pytest.raises(DataError, match=r"^policy: .*1 of 200 rows fails?, first at row 9\.$"):
        Clinic().true_risk(broken)
    with pytest.raises(DataError, match=r"^policy: must have shape \(200, 5\)"):
        Clinic().true_risk(broken[:3])
