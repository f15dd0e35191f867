import numpy as np
import pytest
from evaluation_logs import make_log

from etips.errors import DataError, SettingError
from etips.evaluation import abstention_curve, logged_risk, snips, view


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
