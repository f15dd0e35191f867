"""F6: policies on disk come back whole."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from small_worlds import CLINIC, manifest_of, small, ward

import etips
from etips.errors import FileError
from etips.learn import DirectMethod, DoublyRobust, EtIPS, MostFrequent, PredictiveModel
from etips.models.encoders.gru import GRU
from etips.models.encoders.registry import ENCODERS, make_encoder
from etips.policies.policy_files import load_policy, save_policy
from etips.policies.policy_manifest import read_schema

DATA = ward()


def test_everything_comes_back(learner, folder):
    found = load_policy(folder)
    for name in ("kind", "schema", "temperature", "support", "constant", "earlier_actions", "acts"):
        assert getattr(found, name) == getattr(learner.policy_, name)
    assert found.origin == learner.policy_.origin is not None
    assert found.scaler.to_json() == learner.policy_.scaler.to_json()
    for part in ("propensity", "networks"):
        mine, theirs = getattr(found, part), getattr(learner.policy_, part)
        assert mine.network == theirs.network
        for name, value in theirs.parameters.items():
            assert (mine.parameters[name] == value).all()


@pytest.mark.parametrize("acts", ["likeliest", "draws"])
def test_how_a_policy_acts_comes_back(learner, tmp_path, acts):
    save_policy(replace(learner.policy_, acts=acts), tmp_path / "policy")
    assert load_policy(tmp_path / "policy").acts == acts


def test_whom_a_policy_learned_from_comes_back(learner, folder):
    found = load_policy(folder).seen
    assert found.to_json() == learner.policy_.seen.to_json()
    assert found.overlap(DATA) == (DATA.n_stays, 0, False)
    assert found.overlap(ward(seed=9)).n_stays == DATA.n_stays


@pytest.mark.parametrize("name", ENCODERS)
def test_a_policy_with_any_encoder_we_know_is_opened_again_without_naming_it(tmp_path, name):
    encoder = make_encoder(name, {}, usual=GRU(8, embed=3))
    learner = DoublyRobust(**small(encoder=encoder, support=0.1)).fit(DATA)
    learner.save(tmp_path / "policy")
    found = load_policy(tmp_path / "policy")
    assert found.propensity.network.encoder == encoder
    np.testing.assert_array_equal(found.predict_proba(DATA), learner.predict_proba(DATA))


def test_saving_twice_writes_the_same_bytes(learner, folder, tmp_path):
    save_policy(load_policy(folder), tmp_path / "again")
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_no_patient_is_in_the_folder(folder):
    """P3: neither an identifier nor a row."""
    everything = b"".join(path.read_bytes() for path in folder.iterdir())
    assert b"stay 00" not in everything
    for row in DATA.sequence[:20]:
        assert row.tobytes() not in everything


def test_a_place_that_is_taken_stays_as_it_was(learner, folder, tmp_path):
    before = (folder / "policy.json").read_bytes()
    with pytest.raises(FileError, match="exists already"):
        learner.save(folder)
    assert (folder / "policy.json").read_bytes() == before
    other = tmp_path / "mine"
    other.mkdir()
    (other / "notes.txt").write_text("keep")
    with pytest.raises(FileError, match=r"is not a folder with policy\.json, so it stays"):
        learner.save(other, overwrite=True)
    assert (other / "notes.txt").read_text() == "keep"


@pytest.mark.parametrize(
    "make",
    [
        lambda: DirectMethod(**small()).fit(DATA),
        lambda: DirectMethod(interaction=False, **small()).fit(DATA),
        lambda: PredictiveModel(**small()).fit(DATA),
        lambda: EtIPS(**small(selection="paper")).fit(DATA),
        lambda: MostFrequent().fit(DATA),
    ],
)
def test_every_kind_of_policy_passes_its_own_checks(make, tmp_path):
    learner = make()
    learner.save(tmp_path / "policy")
    found = etips.load(tmp_path / "policy").predict_proba(DATA)
    assert found.tobytes() == learner.predict_proba(DATA).tobytes()


def test_a_coded_world_is_saved_without_its_truth(tmp_path):
    data = CLINIC.log(30, seed=0)
    PredictiveModel(**small()).fit(data).save(tmp_path / "policy")
    assert "truth" not in manifest_of(tmp_path / "policy")


def test_the_schema_is_read_without_torch(folder):
    assert read_schema(folder) == DATA.schema
    code = (
        "import sys; from pathlib import Path;"
        "from etips.policies.policy_manifest import read_schema;"
        f"read_schema(Path({str(folder)!r})); assert 'torch' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_schema_of_a_folder_that_was_changed_or_is_none_is_refused(folder, tmp_path):
    with pytest.raises(FileError):
        read_schema(tmp_path / "none")
    (folder / "policy.json").write_text("{}")
    with pytest.raises(FileError, match=r"policy\.json"):
        read_schema(folder)
