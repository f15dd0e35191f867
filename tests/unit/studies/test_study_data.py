"""The data of a study: described, written as JSON, opened again, and the same every time."""

import json

import numpy as np
import pytest
from small_studies import clinic_document, small_experiment, zeros_document
from small_worlds import CLINIC

from etips.errors import FileError, SettingError
from etips.studies.study_data import (
    FolderData,
    SimulatedData,
    data_from_json,
    data_of,
    load_array,
    open_log,
    save_array,
)
from etips.worlds.digits import labelled_rows, labelled_zeros


def test_what_describes_the_data_survives_json(tmp_path):
    CLINIC.log(5, seed=0).save(tmp_path / "log")
    experiment = small_experiment(clinic_document())
    for data in (
        data_of(experiment),
        data_of(small_experiment(zeros_document())),
        data_of(experiment, tmp_path / "log"),
    ):
        assert data_from_json(json.loads(json.dumps(data.to_json()))) == data


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
