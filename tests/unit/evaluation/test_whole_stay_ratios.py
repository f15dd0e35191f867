"""How much each stay speaks for a policy after each decision."""

import numpy as np
import pytest

from etips.evaluation.inference.checks import code_clusters
from etips.evaluation.whole_stay_course import Course
from etips.evaluation.whole_stay_ratios import CAP, make_ratios


def ratios(stay, weight, patients=None):
    course = Course.of(stay, np.zeros(len(stay)), "sum")
    patient = np.arange(course.n_stays) if patients is None else patients
    return make_ratios(course, np.asarray(weight, float), code_clusters(patient, n=course.n_stays))


def test_ratios_multiply_within_a_stay_and_ended_stays_keep_theirs():
    made = ratios([0, 0, 0, 1, 2, 2], [2, 0.5, 3, 0.2, 0, 5])
    assert made.each == pytest.approx([2, 1, 3, 0.2, 0, 0])
    assert made.below == pytest.approx(np.array([[2, 1, 3], [0.2, 0.2, 0.2], [0, 0, 0]]))
    assert made.above(np.ones(6)) == pytest.approx(np.array([[2, 1, 3], [0.2, 0, 0], [0, 0, 0]]))


def test_stays_of_a_patient_are_added_up():
    made = ratios([0, 1, 2], [2, 0.5, 1], patients=[7, 7, 9])
    assert made.below[:, 0] == pytest.approx([2.5, 1])


def test_ratios_are_cut_and_never_overflow():
    stay = np.repeat(np.arange(100), 400)
    weight = np.full(stay.size, 10.0)
    made = ratios(stay, weight)
    assert made.each.max() == pytest.approx(CAP * 10)
    assert np.isfinite(made.uncut.below**2).all()


def test_late_decisions_share_terms_that_cover_each_once():
    lengths = np.array([500, 3, 40])
    made = ratios(np.repeat(np.arange(3), lengths), np.ones(lengths.sum()))
    assert made.edges[0] == 0
    assert made.edges[-1] == 500
    assert (np.diff(made.edges) > 0).all()
    assert made.edges.size < 80
    assert made.above(np.ones(lengths.sum())).sum(axis=1) == pytest.approx(lengths)
    assert made.below == pytest.approx(1.0)


def test_what_hardly_a_stay_has_followed_is_left_out():
    rng = np.random.default_rng(0)
    stay = np.repeat(np.arange(2000), 8)
    made = ratios(stay, np.where(rng.integers(0, 5, stay.size) == 0, 5.0, 0.0))
    assert made.effective[:3] == pytest.approx([400, 80, 16], rel=0.5)
    assert made.n_terms == made.trusted == 2


def test_a_policy_that_nobody_follows_has_no_term():
    made = ratios([0, 1, 2], [0, 0, 0])
    assert made.n_terms == 0
    assert made.trusted == 0
