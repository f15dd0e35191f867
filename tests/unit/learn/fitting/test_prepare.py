"""From stays to what training reads: tensors, folds, the device, seeds."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_worlds import ward

from etips.data.tables.arrays import from_arrays
from etips.errors import DataError, SettingError
from etips.learn.fitting.prepare import choose_device, prepare, seeds_from

CPU = torch.device("cpu")


def prepared(data, n_folds=3):
    return prepare(data, n_folds=n_folds, seed=0, device=CPU)


def test_no_two_purposes_share_a_seed():
    drawn = [tuple(seeds_from(seed, purpose, 5)) for seed in range(4) for purpose in (1, 2, 3)]
    assert len({value for each in drawn for value in each}) == len(drawn) * 5
    assert seeds_from(7, 1, 3) == seeds_from(7, 1, 5)[:3]


def test_folds_never_exceed_the_patients():
    data = ward(n_stays=4)
    assert prepared(data, n_folds=10).folds.n_networks == 4
    assert prepared(replace(data, group=np.array([0, 0, 1, 1])), n_folds=10).folds.n_networks == 2


def test_a_single_stay_or_no_decision_is_refused():
    with pytest.raises(SettingError, match=r"^split: needs at least 2 stays or patients"):
        prepared(ward().subset([1]))
    with pytest.raises(DataError, match=r"^data: must hold at least one decision"):
        prepared(replace(ward(), loss=np.full(ward().n_steps, np.nan), propensity=None))


def test_in_sample_one_stay_in_ten_decides_when_to_stop():
    folds = prepared(ward(n_stays=40), n_folds=1).folds
    assert folds.n_networks == 1
    assert folds.held_out.sum() == 4
    assert (folds.weight + folds.held_out == 1).all()
    assert (folds.fold == 0).all()


@pytest.mark.parametrize(("n_stays", "n_folds"), [(3, 3), (4, 2), (50, 5), (400, 5), (400, 10)])
def test_what_judges_a_network_neither_trained_nor_stopped_it(n_stays, n_folds):
    folds = prepared(ward(n_stays=n_stays), n_folds=n_folds).folds
    judged = torch.from_numpy(folds.fold == np.arange(n_folds)[:, None]).float()
    assert ((folds.weight + folds.held_out + judged) == 1).all()
    assert (folds.held_out.sum(1) >= 1).all()
    assert (folds.weight.sum(1) >= 1).all()
    assert (folds.held_out.sum(1) <= 0.25 * n_stays).all() or n_stays < 8
    assert (folds.held_out.sum(0) <= 1).all()  # no stay stops two of them


def test_nobody_stops_a_network_that_a_patient_of_theirs_trained():
    data = replace(ward(n_stays=60), group=np.arange(60) // 3)
    folds = prepared(data, n_folds=4).folds
    for learned, stopped in zip(folds.weight.bool(), folds.held_out.bool(), strict=True):
        assert not set(data.group[learned.numpy()]) & set(data.group[stopped.numpy()])


def test_of_two_stays_none_is_left_to_stop_by():
    folds = prepared(ward(n_stays=40).subset([1, 4]), n_folds=5).folds
    assert folds.weight.sum(1).tolist() == [1, 1]
    assert not folds.held_out.any()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused():
    assert choose_device("auto") == CPU
    with pytest.raises(SettingError, match=r"^device: cuda was asked for, but torch finds no GPU"):
        choose_device("cuda")


def test_the_scaler_is_fitted_on_the_stays_at_hand():
    data = from_arrays(np.arange(20.0).reshape(10, 2) * 100, [0, 1] * 5, [0.0, 1.0] * 5)
    scaled = prepared(data, 2).steps.plain.numpy()
    assert scaled.mean(axis=0) == pytest.approx([0, 0], abs=1e-6)
    assert scaled.std(axis=0) == pytest.approx([1, 1], abs=1e-6)


def test_values_of_decisions_stand_at_the_rows_that_answer_them():
    data = ward(lag=1)
    rows = prepared(data).by_row(np.arange(data.n_decisions) + 1)
    assert rows[data.decision_rows - 1].tolist() == list(range(1, data.n_decisions + 1))
    assert int((rows > 0).sum()) == data.n_decisions


@pytest.mark.parametrize("name", ["tpu", "", 3, None, "meta"])
def test_a_device_that_cannot_train_is_refused(name):
    with pytest.raises(SettingError, match=r"^device: must be auto, cpu or cuda"):
        choose_device(name)
