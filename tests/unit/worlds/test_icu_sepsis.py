"""ICU-Sepsis: exact risks, and a simulation that agrees with them."""

import numpy as np
import pytest

from etips.errors import DataError, SettingError
from etips.worlds import icu_sepsis
from etips.worlds.shipped import read_shipped

ONE_HOT = np.eye(25)


@pytest.fixture(scope="module")
def logged():
    return icu_sepsis.simulate(4_000, seed=0, lag=0)


def policies():
    loss = icu_sepsis.expected_loss()
    uniform = np.full((716, 25), 1 / 25)
    return (
        icu_sepsis.clinicians(),
        uniform,
        ONE_HOT[loss.argmin(axis=1)],
        ONE_HOT[loss.argmax(axis=1)],
    )


@pytest.mark.parametrize(
    ("max_steps", "lag", "clinicians", "uniform", "best", "worst"),
    [
        (None, 0, 0.49847, 0.50208, 0.44525, 0.56263),
        (18, 0, 0.49751, 0.50110, 0.44495, 0.56088),
        (None, 1, 0.50175, 0.50548, 0.44557, 0.56936),
        (18, 1, 0.50134, 0.50506, 0.44530, 0.56875),
    ],
)
def test_exact_risks_are_those_on_record(max_steps, lag, clinicians, uniform, best, worst):
    found = [icu_sepsis.exact_risk(p, max_steps=max_steps, lag=lag) for p in policies()]
    assert found == pytest.approx([clinicians, uniform, best, worst], abs=6e-6)


def test_expected_loss_agrees_with_a_plain_sum_over_next_states():
    moves, sofa = read_shipped("icu_sepsis.npz", "tx_mat", "sofa_scores")
    for state, action in ((0, 0), (4, 7), (350, 24), (712, 12)):
        expected = moves[state, action, 713]  # death
        for following in range(713):
            rises = sofa[following] > sofa[state]
            stuck = following == state and sofa[state] > 5
            expected += moves[state, action, following] * (rises or stuck)
        found = icu_sepsis.expected_loss()[state, action]
        assert found == pytest.approx(expected, abs=1e-12)


def test_hiding_the_state_promises_a_risk_that_is_not_there():
    """Endless data, `lag=1`, last visible state: docs/worlds.md gives these figures."""
    (moves,) = read_shipped("icu_sepsis.npz", "tx_mat")
    clinicians, loss = icu_sepsis.clinicians()[:713], icu_sepsis.expected_loss()[:713]
    move = np.einsum("sa,sat->st", clinicians, moves[:713, :, :713])
    pairs = icu_sepsis.occupancy(max_steps=17)[:713, None] * move  # seen state, hidden state
    pairs = pairs[pairs.sum(axis=1) > 0] / pairs.sum()
    taken, truth = pairs @ clinicians, pairs @ loss
    believed = np.full_like(taken, np.inf)
    np.divide(pairs @ (clinicians * loss), taken, out=believed, where=taken > 0)
    share = pairs.sum(axis=1)
    for floor, promised, kept in (
        (0, 0.4155, 0.4982),
        (0.05, 0.4495, 0.4885),
        (0.1, 0.4691, 0.4802),
    ):
        allowed = np.where(taken > floor * share[:, None], believed, np.inf)
        choice = (np.arange(share.size), allowed.argmin(axis=1))
        assert share @ believed[choice] == pytest.approx(promised, abs=6e-5)
        assert truth[choice].sum() == pytest.approx(kept, abs=6e-5)
    assert truth.min(axis=1).sum() == pytest.approx(0.4756, abs=6e-5)


def test_a_simulated_stay_reads_as_states_treated_by_the_clinicians(logged):
    state, rows = logged.truth.code, np.arange(logged.n_steps)
    assert (state < icu_sepsis.DEATH).all()
    assert logged.n_decisions == logged.n_steps  # every step has its action and loss
    assert set(np.unique(logged.loss)) == {0, 1}
    clinicians = icu_sepsis.clinicians()
    assert (logged.propensity == clinicians[state, logged.action]).all()
    assert (logged.true_logging() == clinicians[state]).all()
    (centers,) = read_shipped("icu_sepsis.npz", "state_cluster_centers")
    assert logged.sequence[rows[:50]] == pytest.approx(centers[state[:50]], rel=1e-6)
    assert logged.schema.sequence == icu_sepsis.FEATURES
    assert logged.schema.actions[3] == "fluid 0, vasopressor 3"
    assert logged.schema.actions[24] == "fluid 4, vasopressor 4"


def test_consecutive_steps_are_possible_moves_with_the_loss_of_that_move(logged):
    moves, sofa = read_shipped("icu_sepsis.npz", "tx_mat", "sofa_scores")
    state, inside = logged.truth.code.astype(int), np.ones(logged.n_steps, bool)
    inside[logged.offsets[1:] - 1] = False
    now = np.flatnonzero(inside)
    before, after = state[now], state[now + 1]
    assert (moves[before, logged.action[now], after] > 0).all()
    rises = sofa[after] > sofa[before]
    stuck = (after == before) & (sofa[before] > 5)
    assert (logged.loss[now] == (rises | stuck)).all()


def test_simulated_risks_agree_with_the_exact_ones(logged):
    # About 31,000 decisions: standard error of the mean loss 0.0028, of the true risks 0.0005.
    clinicians, uniform, best, _ = policies()
    assert logged.loss.mean() == pytest.approx(icu_sepsis.exact_risk(clinicians), abs=0.012)
    for policy in (clinicians, uniform, best):
        found = logged.true_risk(policy[logged.truth.code])
        assert found == pytest.approx(icu_sepsis.exact_risk(policy), abs=0.003)


def test_both_lags_are_the_same_stays_and_lag_one_drops_first_steps(logged):
    hidden = icu_sepsis.simulate(4_000, seed=0)
    assert (hidden.truth.code == logged.truth.code).all()
    assert hidden.lag == 1
    assert hidden.n_decisions == hidden.n_steps - hidden.n_stays


def test_a_seed_names_one_set_of_stays_and_leaves_global_generators_alone(generators_left_alone):
    with generators_left_alone():
        first, again, other = (icu_sepsis.simulate(30, seed=s).action for s in (5, 5, 6))
    assert first.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: icu_sepsis.simulate(0, seed=0), "n_stays: must be at least 1"),
        (lambda: icu_sepsis.simulate(1, seed=0, max_steps=0), "max_steps: must be at least 1"),
        (lambda: icu_sepsis.simulate(1, seed=-1), "seed: must not be negative"),
        (lambda: icu_sepsis.simulate(1, seed=0, lag=2), "lag: must be 0 or 1"),
        (lambda: icu_sepsis.occupancy(lag=2), "lag: must be 0 or 1"),
        (lambda: icu_sepsis.occupancy(max_steps=1, lag=1), "max_steps: must exceed lag"),
    ],
)
def test_a_setting_outside_its_limits_is_refused(call, words):
    with pytest.raises(SettingError, match=f"^{words}"):
        call()


def test_a_table_that_is_no_policy_is_refused():
    broken = icu_sepsis.clinicians().copy()
    broken[[3, 7], 0] = np.nan
    with pytest.raises(DataError, match=r"^policy: .*2 of 713 rows fail, first at row 3\.$"):
        icu_sepsis.exact_risk(broken)
    with pytest.raises(DataError, match=r"^policy: must have shape \(716, 25\)"):
        icu_sepsis.exact_risk(broken[:, :3])


def moves_of(policy):
    (moves,) = read_shipped("icu_sepsis.npz", "tx_mat")
    return moves, np.einsum("sa,sat->st", policy[:713], moves[:713])


@pytest.fixture(scope="module")
def clinicians():
    table = icu_sepsis.clinicians().copy()
    table[icu_sepsis.DEATH :] = 1 / 25
    return table


def best_now(clinicians, support):
    allowed = clinicians >= support
    allowed[~allowed.any(axis=1)] = True
    return ONE_HOT[np.where(allowed, icu_sepsis.expected_loss(), 2.0).argmin(axis=1)]


def test_mortality_of_the_clinicians_and_of_one_step_policies_is_that_on_record(clinicians):
    """The figures of docs/worlds.md."""
    assert icu_sepsis.stay_risk(clinicians) == pytest.approx(0.21816, abs=6e-6)
    assert icu_sepsis.stay_risk(best_now(clinicians, 0.0)) == pytest.approx(0.18925, abs=6e-6)
    assert icu_sepsis.stay_risk(best_now(clinicians, 0.05)) == pytest.approx(0.18904, abs=6e-6)


def test_mortality_agrees_with_following_patients_to_their_end(clinicians):
    (start,) = read_shipped("icu_sepsis.npz", "d_0")
    for policy in (clinicians, best_now(clinicians, 0.1)):
        _, step = moves_of(policy)
        now, dead, dead_at_18 = start[:713], 0.0, np.nan
        for number in range(1, 3_000):
            following = now @ step
            dead += following[icu_sepsis.DEATH]
            now = following[:713]
            dead_at_18 = dead if number == 18 else dead_at_18
        assert icu_sepsis.stay_risk(policy) == pytest.approx(dead, abs=1e-9)
        assert icu_sepsis.stay_risk(policy, outcome="last") == pytest.approx(dead, abs=1e-9)
        assert icu_sepsis.stay_risk(policy, max_steps=18) == pytest.approx(dead_at_18, abs=1e-9)


def test_looking_ahead_saves_more_patients_than_the_next_step_does(clinicians):
    """One improvement of the clinicians by what becomes of their patients: docs/worlds.md."""
    moves, step = moves_of(clinicians)
    dies = step[:, icu_sepsis.DEATH]
    ahead = np.zeros(716)
    ahead[:713] = np.linalg.solve(np.eye(713) - step[:, :713], dies)
    expected = moves[:, :, icu_sepsis.DEATH] + moves @ ahead
    improved = ONE_HOT[np.where(clinicians >= 0.05, expected, 2.0).argmin(axis=1)]
    assert icu_sepsis.stay_risk(improved) == pytest.approx(0.14155, abs=6e-6)


@pytest.mark.parametrize("loss", ["sofa", "mortality"])
@pytest.mark.parametrize("outcome", ["sum", "last"])
def test_a_simulated_log_agrees_with_the_exact_outcome_of_its_stays(clinicians, loss, outcome):
    log = icu_sepsis.simulate(4_000, seed=1, lag=0, loss=loss)
    ends = log.offsets[1:] - 1
    each = np.add.reduceat(log.loss, log.offsets[:-1]) if outcome == "sum" else log.loss[ends]
    exact = icu_sepsis.stay_risk(clinicians, loss=loss, outcome=outcome, max_steps=18)
    assert abs(each.mean() - exact) < 4 * each.std() / np.sqrt(4_000)


@pytest.mark.parametrize("lag", [0, 1])
def test_the_clinicians_deployed_have_their_own_mortality(clinicians, lag):
    def left_to_them(asked):
        return np.zeros((asked.n_decisions, 25))

    deployed = icu_sepsis.deploy_policy(left_to_them, n_stays=4_000, seed=0, lag=lag)
    found = deployed.stay_risk()
    exact = icu_sepsis.stay_risk(clinicians, max_steps=18)
    assert abs(found.risk - exact) < 4 * found.std_error
    assert (deployed.total == deployed.last).all()
    assert (deployed.lengths.min(), deployed.lengths.max()) == (1, 18)


def test_a_policy_of_the_present_is_a_table_with_an_exact_mortality(clinicians):
    table = best_now(clinicians, 0.05)
    features = read_shipped("icu_sepsis.npz", "state_cluster_centers")[0][:713].astype(np.float32)

    def policy(asked):
        seen = asked.sequence[asked.seen_rows]
        nearest = ((seen[:, None, :5] - features[None, :, :5]) ** 2).sum(axis=2).argmin(axis=1)
        return table[nearest]

    assert (icu_sepsis.table_of(policy)[:713] == table[:713]).all()
    found = icu_sepsis.deploy_policy(policy, n_stays=1_000, seed=2).stay_risk()
    assert abs(found.risk - icu_sepsis.stay_risk(table, max_steps=18)) < 4 * found.std_error


def test_a_loss_or_outcome_that_there_is_not_is_refused(clinicians):
    with pytest.raises(SettingError, match="loss: must be 'sofa' or 'mortality'"):
        icu_sepsis.simulate(1, seed=0, loss="days")
    with pytest.raises(SettingError, match="outcome: must be sum or last"):
        icu_sepsis.stay_risk(clinicians, outcome="mean")
    with pytest.raises(DataError, match="policy: must have shape"):
        icu_sepsis.stay_risk(clinicians[:3])
