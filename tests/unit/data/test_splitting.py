"""Splits and folds by patient or stay, never by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_cohorts import Cohort, cohorts
from strategies import fingerprint

from etips.data import Schema, Trajectories, assign_folds, folds, split
from etips.data.splitting import held_out
from etips.errors import SettingError


def plain_cohort(group):
    """One-step stays of these patients: all a split looks at."""
    n = len(group)
    return Trajectories(
        sequence=np.zeros((n, 1), np.float32),
        offsets=np.arange(n + 1),
        schema=Schema(sequence=("x",), n_actions=1, lag=0),
        action=np.zeros(n, int),
        loss=np.zeros(n),
        group=group,
    )


def test_d3_no_patient_stands_on_both_sides_of_any_split_or_fold():
    """D3: 10,000 random cohorts with readmissions, each split once and folded once."""
    rng = np.random.default_rng(0)
    n_shared = 0
    for seed in range(10_000):
        n = int(rng.integers(4, 12))
        group = rng.integers(0, max(n // 2, 3), n)
        group[:3] = [0, 1, 2]  # at least three patients
        data = plain_cohort(group)
        n_shared += len(set(group.tolist())) < n
        train, test = split(data, test=float(rng.uniform(0.05, 0.95)), seed=seed)
        assert not set(train.group.tolist()) & set(test.group.tolist())
        assert sorted([*train.stay, *test.stay]) == list(range(n))
        fold = assign_folds(data, n_folds=3, seed=seed)
        pairs = set(zip(group.tolist(), fold.tolist(), strict=True))
        assert len(pairs) == len(set(group.tolist()))  # one fold a patient
    assert n_shared > 9_000  # nearly every cohort had a readmission


@given(cohorts, st.integers(0, 99), st.booleans())
def test_d3_whole_stays_go_to_one_side_and_nothing_is_lost(cohort, seed, by_group):
    """D3 on cohorts with steps: every stay arrives whole, on one side."""
    data = cohort.make()
    by_group = by_group and data.group is not None
    units = data.group if by_group else data.stay
    if len(np.unique(units)) < 2:
        return
    parts = split(data, test=0.3, seed=seed, by_group=by_group)
    ids = [set(part.stay.tolist()) for part in parts]
    assert not ids[0] & ids[1]
    assert ids[0] | ids[1] == set(data.stay.tolist())
    assert sum(part.n_decisions for part in parts) == data.n_decisions
    if by_group:
        assert not set(parts[0].group.tolist()) & set(parts[1].group.tolist())


def test_folds_are_each_tested_once_and_differ_by_at_most_one():
    data = Cohort(seed=2, n_stays=23, readmissions=False).make()
    fold = assign_folds(data, n_folds=5, seed=1)
    sizes = np.bincount(fold, minlength=5)
    assert sizes.max() - sizes.min() <= 1
    tested = []
    for k, (train, test) in enumerate(folds(data, n_folds=5, seed=1)):
        assert test.stay.tolist() == data.stay[fold == k].tolist()
        assert train.n_stays + test.n_stays == 23
        assert not set(train.stay.tolist()) & set(test.stay.tolist())
        tested += test.stay.tolist()
    assert sorted(tested) == data.stay.tolist()


def test_the_share_of_the_test_part_is_of_the_patients():
    data = plain_cohort(np.arange(100) // 2)
    train, test = split(data, test=0.1, seed=3)
    assert (train.n_stays, test.n_stays) == (90, 10)
    alone, rest = split(data, test=0.1, seed=3, by_group=False)
    assert set(alone.group.tolist()) & set(rest.group.tolist())  # torn apart on request


def test_a_tiny_share_still_leaves_one_on_each_side():
    data = plain_cohort(np.arange(3))
    for share in (1e-9, 1 - 1e-9):
        train, test = split(data, test=share, seed=0)
        assert min(train.n_stays, test.n_stays) == 1


def test_the_seed_decides_and_global_randomness_is_left_alone():
    data = Cohort(seed=2, n_stays=40).make()
    np.random.seed(7)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = (split(data, test=0.3, seed=seed)[1] for seed in (1, 1, 2))
    assert fingerprint(first) == fingerprint(again) != fingerprint(other)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_stays_drawn_twice_stay_together():
    data = Cohort(seed=2, n_stays=6, readmissions=False).make().subset([0, 0, 1, 1, 2, 2, 3, 3])
    train, test = split(data, test=0.5, seed=0)
    assert not set(train.stay.tolist()) & set(test.stay.tolist())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d: split(d, test=0), r"^test: must be a share between 0 and 1\.$"),
        (lambda d: split(d, test=float("nan")), r"^test: must be a share between 0 and 1\.$"),
        (lambda d: split(d, by_group=True), r"^by_group: needs data that names a group column\.$"),
        (lambda d: folds(d, n_folds=1), r"^n_folds: must be at least 2\.$"),
        (lambda d: folds(d, n_folds=9), r"^split: needs at least 9 stays or patients, there are 4"),
        (
            lambda d: split(d.subset([0])),
            r"^split: needs at least 2 stays or patients, there are 1",
        ),
    ],
)
def test_a_split_that_cannot_be_is_refused(call, message):
    with pytest.raises(SettingError, match=message):
        call(Cohort(seed=0, n_stays=4, readmissions=False).make())


def test_who_is_held_out_is_so_whoever_else_is_there_and_at_every_larger_share():
    data = plain_cohort(np.arange(4000) // 2)
    few, more = held_out(data, 0.2), held_out(data, 0.5)
    assert few.mean() == pytest.approx(0.2, abs=0.03)
    assert more.mean() == pytest.approx(0.5, abs=0.03)
    assert (more | ~few).all()
    assert (few[::2] == few[1::2]).all()  # both stays of a patient
    some = np.arange(0, 4000, 7)
    assert (held_out(data.subset(some), 0.2) == few[some]).all()
    assert (held_out(plain_cohort(data.group.astype(str)), 0.2) == few).all()


@pytest.mark.parametrize("share", [0, 1, -0.3, float("nan")])
def test_a_share_held_out_is_between_0_and_1(share):
    with pytest.raises(SettingError, match="hold_out: must be a share between 0 and 1"):
        held_out(plain_cohort(np.arange(9)), share)
