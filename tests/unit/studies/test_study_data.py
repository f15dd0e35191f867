"""The data of a study: the same every time, and dealt so that no patient is on both sides."""

from dataclasses import replace

import numpy as np
import pytest
from small_studies import clinic_document, small_experiment, zeros_document
from small_worlds import CLINIC

from etips.errors import FileError, SettingError
from etips.studies.study_data import (
    Dealing,
    FolderData,
    SimulatedData,
    data_of,
    load_array,
    open_log,
    save_array,
)
from etips.worlds.clinic import Clinic
from etips.worlds.digits import labelled_rows, labelled_zeros


def test_a_world_and_a_folder_are_told_apart(tmp_path):
    CLINIC.log(5, seed=0).save(tmp_path / "log")
    experiment = small_experiment(clinic_document())
    assert data_of(experiment) == SimulatedData("clinic", 60, 0)
    assert isinstance(data_of(experiment, tmp_path / "log"), FolderData)
    assert data_of(small_experiment(zeros_document())).has_labels


def test_true_propensities_of_a_world_are_kept_from_the_study(tmp_path):
    log = open_log(SimulatedData("icu-sepsis", 8, 1, lag=1), tmp_path)
    assert (log.n_stays, log.lag, log.propensity) == (8, 1, None)
    assert log.truth is not None


def test_a_folder_that_changed_is_refused(tmp_path):
    CLINIC.log(5, seed=0).save(tmp_path / "log")
    data = data_of(small_experiment(clinic_document()), tmp_path / "log")
    assert open_log(data, tmp_path).n_stays == 5
    CLINIC.log(6, seed=0).save(tmp_path / "log", overwrite=True)
    with pytest.raises(FileError, match="has changed since the study began"):
        open_log(data, tmp_path / "elsewhere")


def test_arrays_come_back_as_they_were_and_damage_is_refused(tmp_path):
    values = np.array([[0.25, 0.75]])
    save_array(tmp_path / "policy.npy", values)
    assert (load_array(tmp_path / "policy.npy") == values).all()
    (tmp_path / "policy.npy").write_bytes(b"no array")
    with pytest.raises(FileError, match=r"policy\.npy: cannot be read\. Remove the folder"):
        load_array(tmp_path / "policy.npy")


def test_data_without_a_world_needs_a_folder(tmp_path):
    experiment = small_experiment(clinic_document(), world="data", n=0)
    with pytest.raises(SettingError, match=r"^--data: must name a folder"):
        data_of(experiment)
    with pytest.raises(FileError, match=r"must be a folder with schema\.json"):
        data_of(experiment, tmp_path)


def test_a_slip_in_the_logging_policy_is_refused():
    document = zeros_document(logging_policy={"depth": 3})
    with pytest.raises(SettingError, match=r"^logging_policy\.depth: is not a setting"):
        data_of(small_experiment(document))


@pytest.mark.parametrize("world", ["digits-zeros", "digits-rows"])
def test_a_few_samples_bring_only_the_images_they_need(world):
    found = SimulatedData(world, 7, 3).open_labelled()
    whole = labelled_zeros(n=7, seed=3) if world == "digits-zeros" else labelled_rows(n=7)
    assert (found.sequence[:] == whole.sequence[:]).all()
    assert (found.logged_action == whole.logged_action).all()
    assert len(found.sequence.table) <= found.n_steps < len(whole.sequence.table)


@pytest.mark.parametrize(("n", "sizes"), [(10_000, (7_200, 1_000)), (203, (146, 20))])
def test_table_one_holds_out_the_first_tenth_and_a_fold_after_the_other(n, sizes):
    stays = Clinic(decisions_per_stay=1).log(n, seed=0)
    parts = [Dealing("table1", folds=5, seed=0).part(stays, fold) for fold in range(5)]
    assert (parts[0].learn.sum(), parts[0].held.sum()) == sizes  # the paper's
    for part in parts:
        assert np.flatnonzero(part.held).tolist() == list(range(n // 10))
        assert not (part.learn & part.held).any()
    spare = [np.flatnonzero(~part.learn & ~part.held) for part in parts]
    assert np.concatenate(spare).tolist() == list(range(n // 10, n))


def test_too_few_samples_are_refused():
    with pytest.raises(SettingError, match=r"^n: must be at least 50 for 5 folds"):
        Dealing("table1", folds=5, seed=0).part(CLINIC.log(49, seed=0), 0)


def test_every_stay_of_table_two_is_held_out_once_and_no_patient_is_on_both_sides():
    stays = CLINIC.log(40, seed=0)
    stays = replace(stays, group=np.repeat(np.arange(10), 4))
    parts = [Dealing("table2", folds=5, seed=3).part(stays, k) for k in range(5)]
    assert (sum(part.held.astype(int) for part in parts) == 1).all()
    for part in parts:
        assert (part.learn == ~part.held).all()
        assert not set(stays.group[part.learn]) & set(stays.group[part.held])
