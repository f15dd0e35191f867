"""Who learns and who is held out: nobody on both sides."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLINIC

from etips.errors import SettingError
from etips.studies.folds import Dealing, dealt_part, leading_part


@pytest.mark.parametrize(
    ("n", "sizes"), [(10_000, (7_200, 1_000, 1_800)), (70_000, (50_400, 7_000, 12_600))]
)
def test_the_parts_of_table_one_have_the_papers_sizes(n, sizes):
    for fold in range(5):
        part = leading_part(n, folds=5, fold=fold)
        assert (part.learn.sum(), part.held.sum(), part.spare.sum()) == sizes


def test_the_test_part_is_the_first_tenth_in_every_fold_and_never_learned_from():
    for fold in range(5):
        part = leading_part(200, folds=5, fold=fold)
        assert np.flatnonzero(part.held).tolist() == list(range(20))
        assert not (part.learn & (part.held | part.spare)).any()
        assert (part.learn | part.held | part.spare).all()


def test_folds_follow_one_another_without_shuffling_and_cover_the_rest_once():
    places = [np.flatnonzero(leading_part(203, folds=5, fold=k).spare) for k in range(5)]
    assert np.concatenate(places).tolist() == list(range(20, 203))
    assert [len(p) for p in places] == [37, 37, 37, 36, 36]  # the first ones larger, as in sklearn


def test_too_few_samples_are_refused():
    with pytest.raises(SettingError, match=r"^n: must be at least 50 for 5 folds"):
        leading_part(49, folds=5, fold=0)


def test_every_stay_of_table_two_is_held_out_once():
    stays = CLINIC.log(31, seed=0)
    parts = [dealt_part(stays, folds=5, fold=k, seed=3) for k in range(5)]
    assert (sum(part.held.astype(int) for part in parts) == 1).all()
    assert all((part.learn == ~part.held).all() for part in parts)


def test_stays_of_a_patient_are_never_on_both_sides():
    stays = CLINIC.log(40, seed=0)
    stays = replace(stays, group=np.repeat(np.arange(10), 4))
    for fold in range(5):
        part = dealt_part(stays, folds=5, fold=fold, seed=0)
        assert not set(stays.group[part.learn]) & set(stays.group[part.held])


def test_the_table_says_which_way_stays_are_dealt():
    stays = CLINIC.log(40, seed=0)
    first = Dealing("table1", folds=2, seed=0).part(stays, 0)
    second = Dealing("table2", folds=2, seed=0).part(stays, 0)
    assert np.flatnonzero(first.held).tolist() == [0, 1, 2, 3]
    assert (second.held == dealt_part(stays, folds=2, fold=0, seed=0).held).all()
