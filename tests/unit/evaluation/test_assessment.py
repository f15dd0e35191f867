"""Everything the evaluation says about one policy."""

import subprocess
import sys

import numpy as np
import pytest
from evaluation_logs import make_log

from etips.errors import DataError, SettingError
from etips.evaluation import (
    ESTIMATORS,
    Log,
    abstention_curve,
    assess,
    atenp,
    difference,
    dm,
    dr,
    guaranteed_gain,
    logged_risk,
    snips,
    view,
)
from etips.evaluation.assessment import control_gain
from etips.evaluation.estimators import WEIGHTS
from etips.evaluation.inference.intervals import Wald


def test_an_assessment_holds_every_estimate_gain_diagnosis_and_verdict():
    log, table, _ = make_log()
    found = assess(log, table)
    policy = view(log, table)
    by_name = {e.estimator: e for e in found.estimates}
    assert set(by_name) == set(ESTIMATORS)
    assert found.estimates[0].estimator == "sndr"
    assert by_name["snips"] == snips(log.loss, policy.weight, log.cluster)
    assert by_name["dm"] == dm(policy.predicted_policy, log.cluster)
    model = {"predicted": policy.predicted, "predicted_policy": policy.predicted_policy}
    assert by_name["dr"] == dr(log.loss, policy.weight, log.cluster, **model)
    clinicians = logged_risk(log.loss, log.cluster).risk
    assert found.gain.difference == pytest.approx(found.estimates[0].risk - clinicians)
    assert found.matched == atenp(log.loss, log.action, table, log.cluster)
    assert found.diagnostics.n_matched == found.matched.n_matched
    assert found.verdict.label in ("reliable", "doubtful", "unusable")
    assert found.guaranteed == guaranteed_gain(log.loss, policy.weight, log.cluster)


def test_the_first_estimator_asked_for_is_the_headline():
    log, table, _ = make_log()
    found = assess(log, table, estimators=("dr", "snips"))
    assert [e.estimator for e in found.estimates] == ["dr", "snips"]
    clinicians = logged_risk(log.loss, log.cluster).risk
    assert found.gain.difference == pytest.approx(found.estimates[0].risk - clinicians)


def test_where_a_policy_abstains_the_clinicians_loss_counts_as_it_is():
    log, table, _ = make_log(floor=0.2)
    silent = np.ones(log.n_decisions, dtype=bool)
    for estimate in assess(log, table, silent).estimates:
        assert estimate.risk == pytest.approx(
            log.predicted[log.rows, log.action].mean()
            if estimate.estimator == "dm"
            else log.loss.mean()
        ), estimate.estimator
    gain = assess(log, table, silent).gain
    assert gain.difference == pytest.approx(0, abs=1e-12)
    assert (gain.low, gain.high) == pytest.approx((0, 0), abs=1e-12)
    assert gain.p_value == 1


def test_without_an_outcome_model_the_weighted_estimators_remain():
    log, table, _ = make_log(predicted=False)
    weighted = [name for name, entry in ESTIMATORS.items() if entry.needs == WEIGHTS]
    assert [e.estimator for e in assess(log, table).estimates] == weighted
    with pytest.raises(SettingError, match=rf"^estimators: must be among {', '.join(weighted)}\.$"):
        assess(log, table, estimators=("dr",))


def test_estimates_of_two_logs_cannot_be_paired_though_they_have_as_many_stays():
    log, table, _ = make_log()
    fields = {name: getattr(log, name) for name in ("loss", "action", "propensity")}
    other = Log(**fields, cluster=log.cluster + 1000, n_actions=4)
    first, second = assess(log, table).estimates[0], assess(other, table).estimates[0]
    with pytest.raises(DataError, match="cluster"):
        difference(first, second)


def test_a_view_averages_the_outcome_model_over_the_policy():
    log, table, _ = make_log()
    policy = view(log, table)
    rows = np.arange(log.n_decisions)
    assert policy.predicted == pytest.approx(log.predicted[rows, log.action])
    assert policy.predicted_policy == pytest.approx((table * log.predicted).sum(axis=1))
    assert (policy.recommended == table.argmax(axis=1)).all()
    assert policy.weight == pytest.approx(table[rows, log.action] / log.propensity)


def test_inputs_are_left_unchanged():
    log, table, _ = make_log()
    copies = [log.loss.copy(), log.action.copy(), log.propensity.copy(), table.copy()]
    for array in (log.loss, log.action, log.propensity, table):
        array.flags.writeable = False
    assess(log, table)
    for array, copy in zip((log.loss, log.action, log.propensity, table), copies, strict=True):
        assert (array == copy).all()


def test_evaluation_needs_numpy_and_scipy_alone():
    code = (
        "import sys, etips.evaluation; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'torch', 'pyarrow', 'sklearn', 'pandas', 'rich', 'typer'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_curve_runs_from_the_policy_to_the_clinicians():
    log, table, _ = make_log(n_stays=300)
    policy = view(log, table)
    found = abstention_curve(log, policy, supports=(1.0, 0.0, 0.1, 0.3))
    assert [point.support for point in found] == [0, 0.1, 0.3, 1]
    assert found[0].risk.risk == snips(log.loss, policy.weight, log.cluster).risk
    assert (found[0].coverage, found[0].n_abstained) == (1, 0)
    clinicians = logged_risk(log.loss, log.cluster).risk
    assert (found[-1].coverage, found[-1].n_abstained) == (0, log.n_decisions)
    assert found[-1].risk.risk == pytest.approx(clinicians)
    assert found[-1].gain.difference == pytest.approx(0)
    coverage = [point.coverage for point in found]
    assert coverage == sorted(coverage, reverse=True)


def test_a_point_by_hand():
    log, table, _ = make_log(n_stays=40)
    policy = view(log, table)
    (point,) = abstention_curve(log, policy, supports=(0.2,))
    speaks = log.propensities[np.arange(log.n_decisions), table.argmax(axis=1)] >= 0.2
    weight = np.where(speaks, policy.weight, 1)
    assert 0 < point.coverage < 1
    assert point.coverage == speaks.mean()
    assert point.risk.risk == pytest.approx(weight @ log.loss / weight.sum())
    assert point.gain.difference == pytest.approx(point.risk.risk - log.loss.mean())


def test_abstention_needs_every_propensity_and_fair_supports():
    log, table, _ = make_log(full=False)
    with pytest.raises(DataError, match=r"^propensities: must be given for every action"):
        abstention_curve(log, view(log, table))
    log, table, _ = make_log()
    for supports in ((), (-0.1,), (1.5,)):
        with pytest.raises(SettingError, match="supports"):
            abstention_curve(log, view(log, table), supports=supports)


def world(n, seed, *, right):
    """Sicker patients get action 1; the control is a trace of how sick they are."""
    generator = np.random.default_rng(seed)
    sick = generator.normal(size=n)
    chance = 1 / (1 + np.exp(-1.2 * sick))
    action = (generator.random(n) < chance).astype(int)
    stated = chance if right else np.full(n, action.mean())
    log = Log(
        loss=(generator.random(n) < 1 / (1 + np.exp(-sick))).astype(float),
        action=action,
        propensity=np.where(action == 1, stated, 1 - stated),
        cluster=np.arange(n),
        n_actions=2,
    )
    control = 0.7 * sick + generator.normal(size=n)
    return log, view(log, np.tile([1.0, 0.0], (n, 1))), control


def test_a_gain_in_the_control_gives_wrong_propensities_away():
    log, policy, control = world(1_500, 0, right=False)
    found = control_gain(log, policy, control)
    assert found.warning
    assert found.high < 0
    right = control_gain(*world(1_500, 0, right=True))
    assert not right.warning
    assert right.low < 0 < right.high


def test_false_alarms_are_rare():
    alarms = sum(control_gain(*world(400, seed, right=True)).warning for seed in range(200))
    assert alarms <= 8  # 2 expected; heavy weights cost some


def test_it_is_the_gain_with_the_control_as_the_loss_where_that_is_known():
    log, policy, control = world(300, 1, right=True)
    control[::7] = np.nan
    known = ~np.isnan(control)
    own = control[known], policy.weight[known], log.cluster[known]
    wanted = difference(snips(*own), logged_risk(own[0], own[2]), interval=Wald(0.99))
    found = control_gain(log, policy, control)
    assert (found.difference, found.low, found.high) == pytest.approx(
        (wanted.difference, wanted.low, wanted.high)
    )
    assert found.spread == pytest.approx(own[0].std())


def test_a_control_that_is_nowhere_or_too_short_is_refused():
    log, policy, control = world(50, 2, right=True)
    with pytest.raises(DataError, match=r"^negative_control: must be known in two clusters"):
        control_gain(log, policy, np.full(50, np.nan))
    with pytest.raises(DataError, match=r"^negative_control: must have one entry a decision"):
        control_gain(log, policy, control[:-1])
