"""Sums by patient: risks, errors and differences that follow from them are the estimators'."""

import numpy as np
import pytest

from etips.evaluation import matching_factor, sndr, snips
from etips.learn.fitting.candidates import Weighing


def log(n=60, seed=0):
    rng = np.random.default_rng(seed)
    loss, cluster = (rng.random(n) < 0.4).astype(float), np.sort(rng.integers(0, 20, n)) * 3
    return loss, cluster, rng.uniform(0.2, 1, n), rng.uniform(0, 1, (2, n)), rng.random((3, n))


def test_a_risk_and_its_error_are_those_of_snips_by_patient():
    loss, cluster, propensity, chosen, _ = log()
    totals = Weighing(propensity, loss, cluster).totals(list(chosen))
    for place, own in enumerate(chosen):
        wanted = snips(loss, own / propensity, cluster)
        found = totals.evidence(place)
        assert (found.value, found.std_error) == pytest.approx((wanted.risk, wanted.std_error))
        factor = matching_factor(own / propensity, cluster).risk
        assert totals.matching_factor(place) == pytest.approx(factor)
        weight = own / propensity
        size = weight.sum() ** 2 / (weight**2).sum()
        assert totals.effective_size(place) == pytest.approx(size)


def test_with_predicted_losses_it_is_the_doubly_robust_one():
    loss, cluster, propensity, chosen, (said, *under) = log()
    totals = Weighing(propensity, loss, cluster, said).totals(list(chosen), list(under))
    for place, own in enumerate(chosen):
        weight = own / propensity
        wanted = sndr(loss, weight, cluster, predicted=said, predicted_policy=under[place])
        found = totals.evidence(place)
        assert (found.value, found.std_error) == pytest.approx((wanted.risk, wanted.std_error))


def test_some_patients_alone_are_as_if_there_were_no_others():
    loss, cluster, propensity, chosen, _ = log()
    patients = np.unique(cluster)
    some = np.arange(len(patients)) % 3 > 0
    inside = np.isin(cluster, patients[some])
    part = Weighing(propensity, loss, cluster).totals(list(chosen)).of(some)
    whole = Weighing(propensity[inside], loss[inside], cluster[inside]).totals(
        [own[inside] for own in chosen]
    )
    assert part.evidence(1).value == pytest.approx(whole.evidence(1).value)
    assert part.evidence(1).std_error == pytest.approx(whole.evidence(1).std_error)
    assert part.effective_size(0) == pytest.approx(whole.effective_size(0))


def test_a_choice_for_each_patient_is_one_policy():
    loss, cluster, propensity, chosen, _ = log()
    totals = Weighing(propensity, loss, cluster).totals(list(chosen))
    patient = np.unique(cluster, return_inverse=True)[1]
    places = np.arange(patient.max() + 1) % 2
    mixed = np.where(places[patient] == 0, chosen[0], chosen[1])
    wanted = snips(loss, mixed / propensity, cluster)
    found = totals.evidence_of_choice(places)
    assert (found.value, found.std_error) == pytest.approx((wanted.risk, wanted.std_error))


def test_tiny_weights_have_a_size_all_the_same():
    totals = Weighing(np.ones(8), np.ones(8), np.arange(8)).totals([np.full(8, 1e-200)])
    assert totals.effective_size(0) == pytest.approx(8)
    assert totals.evidence(0).value == pytest.approx(1)
