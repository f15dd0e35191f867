import subprocess
import sys

import numpy as np
import pytest
from evaluation_logs import make_log

from etips.errors import DataError, SettingError
from etips.evaluation import (
    ESTIMATORS,
    Log,
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
from etips.evaluation.estimators import WEIGHTS


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


def test_deterministic_policies_get_every_estimate_too():
    log, table, _ = make_log()
    found = assess(log, np.eye(4)[table.argmax(axis=1)])
    assert all(np.isfinite(e.risk) for e in found.estimates)


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


def test_names_of_stays_give_the_same_as_numbers():
    log, table, _ = make_log()
    fields = {name: getattr(log, name) for name in ("loss", "action", "propensity")}
    named = Log(**fields, cluster=[f"stay {i:03}" for i in log.cluster], n_actions=4)
    snips_only = {"estimators": ("snips",)}
    assert (
        assess(named, table, **snips_only).estimates == assess(log, table, **snips_only).estimates
    )


def test_inputs_are_left_unchanged():
    log, table, _ = make_log()
    copies = [log.loss.copy(), log.action.copy(), log.propensity.copy(), table.copy()]
    for array in (log.loss, log.action, log.propensity, table):
        array.flags.writeable = False
    assess(log, table)
    for array, copy in zip((log.loss, log.action, log.propensity, table), copies, strict=True):
        assert (array == copy).all()


def test_evaluation_needs_numpy_only():
    code = (
        "import sys, etips.evaluation; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'torch', 'pyarrow', 'scipy', 'pandas', 'rich', 'typer'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
