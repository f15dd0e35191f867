"""The run folder: what it holds, how it is read back, and where one may be written."""

import math

import pytest
from small_worlds import small, ward

from etips.data.tables.table_spec import TableSpec
from etips.errors import FileError
from etips.files.lock import LOCK_NAME
from etips.learn import DoublyRobust
from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.recipes import Recipe
from etips.runs.folder import RunConfig, RunFolder, load, read_config
from etips.runs.places import Device, holds_policy, require_room

DATA = ward()
PATH = (Candidate(0.3, 0.4, 0.01, 1.0, 90.0, chosen=True, epochs=5),)
UNKNOWN = Candidate(math.nan, math.inf, math.inf, 0.0, 0.0)


@pytest.fixture(scope="module")
def policy():
    return DoublyRobust(**small(support=0.1)).fit(DATA).policy_


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run").mkdir()
    return RunFolder(tmp_path / "run")


def write(folder, policy, **more):
    config = RunConfig(Recipe("doubly-robust", {"hidden": 6}, 3))
    given = {"path": PATH, "config": config, "data": "0" * 64, "overwrite": False, **more}
    folder.write(policy, **given)


def test_what_was_written_is_read_back(folder, policy):
    write(folder, policy)
    assert folder.has_policy
    assert (folder.open_policy().predict_proba(DATA) == policy.predict_proba(DATA)).all()
    assert folder.read_path() == PATH
    assert folder.read_config().recipe == Recipe("doubly-robust", {"hidden": 6}, 3)
    told = {"method": "doubly-robust", "seed": 3, "device": "auto", "settings": {"hidden": 6}}
    assert folder.read_told() == told


def test_the_clinicians_are_kept_where_they_were_fitted_and_go_where_they_were_not(folder, policy):
    write(folder, policy)
    imitation = RunFolder(folder.place / "propensity").open_policy()
    assert imitation.predict_proba(DATA) == pytest.approx(policy.propensities(DATA))
    constant = type(policy)(schema=policy.schema, kind="constant", constant=1)
    write(folder, constant, overwrite=True)
    assert not (folder.place / "propensity").exists()


def test_a_policy_of_a_killed_run_is_replaced_without_asking_and_its_results_go(folder, policy):
    assert (folder.read_told(), folder.read_path(), folder.has_policy) == ({}, (), False)
    write(folder, policy)
    folder.results.write_text("of an earlier policy")
    write(folder, policy)
    assert folder.has_policy
    assert not folder.results.exists()


def test_a_run_tells_how_its_table_was_read(folder, policy):
    assert folder.read_columns() == TableSpec()
    write(folder, policy)
    assert folder.read_columns() == TableSpec()
    folder.config.write_text('[data]\nstay = "id"\nmissing_loss = "weight"\nfingerprint = "0"\n')
    assert folder.read_columns() == TableSpec(stay="id", missing_loss="weight")


def test_a_candidate_without_figures_has_none_when_it_is_read(folder, policy):
    write(folder, policy, path=[UNKNOWN])
    assert '"risk": null' in (folder.place / "path.json").read_text()
    (found,) = folder.read_path()
    assert (found.matching_factor, found.chosen) == (0.0, False)
    assert math.isnan(found.translation)
    assert math.isnan(found.risk)  # JSON has no infinity


@pytest.mark.parametrize("text", ["{}", '{"path": 3}', '{"path": [3]}'])
def test_another_document_is_no_path(text, folder):
    (folder.place / "path.json").write_text(text)
    with pytest.raises(FileError, match=r"path\.json: is not a translation path\. Remove it\."):
        folder.read_path()


def test_what_a_forger_left_out_of_a_path_is_no_number(folder):
    (folder.place / "path.json").write_text('{"path": [{"risk": "low", "chosen": 1}]}')
    (candidate,) = folder.read_path()
    assert math.isnan(candidate.risk)
    assert candidate.chosen is False


def test_load_finds_data_policies_and_runs_and_refuses_the_rest(folder, policy, tmp_path):
    write(folder, policy)
    assert load(folder.place).schema == DATA.schema
    assert load(folder.place / "policy").schema == DATA.schema
    DATA.save(tmp_path / "data")
    assert load(tmp_path / "data").n_decisions == DATA.n_decisions
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FileError, match="holds neither a data set nor a policy"):
            load(place)


def test_a_config_reads_back_from_its_text(tmp_path):
    columns = TableSpec(
        stay="id",
        action=("a", "b"),
        loss="l",
        static=("age", "weight"),
        combine={"urine": "sum"},
        negative_control="before",
        missing_loss="weight",
        lag=0,
    )
    config = RunConfig(Recipe("direct", {"policy.epochs": 3}, 4), columns, Device.CPU, 0.25)
    (tmp_path / "config.toml").write_text(config.to_toml(data="0" * 64))
    assert read_config(tmp_path / "config.toml") == config


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ('device = "tpu"', "device must be auto, cpu, cuda"),
        ("hold_out = 1", "hold_out must be a share between 0 and 1"),
        ('hold_out = "some"', "hold_out must be a share between 0 and 1"),
        ("data = 3", "data must be a table"),
        ("[data]\nlag = 2", "data.lag must be 0 or 1"),
        ('[data]\nmissing_loss = "x"', 'data.missing_loss must be "drop" or "weight"'),
        ("[data]\nstay = 3", "data.stay must be a text"),
        ('[data]\nstatic = "age"', "data.static must be a list of columns"),
        ("[data]\npath = 3", "data.path is not a key"),
    ],
)
def test_a_slip_is_refused_by_its_place(text, rule, tmp_path):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(FileError, match=rf"config\.toml: {rule}"):
        read_config(tmp_path / "config.toml")


def test_all_slips_of_a_file_are_told_at_once(tmp_path):
    slips = ['device = "tpu"', "hold_out = 2", "[settings]", 'epochs = "x"', "hiden = 3"]
    text = "\n".join([*slips, "[data]", "lag = 2", 'stayy = "s"'])
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(FileError, match=r"config\.toml: has 6 faults: \(1\)") as caught:
        read_config(tmp_path / "config.toml")
    for words in (
        "data.stayy is not a key. Do you mean stay?",
        "data.lag must be 0 or 1",
        "device must be auto, cpu, cuda",
        "hold_out must be a share",
        "epochs must be a whole number",
        "hiden",
    ):
        assert words in str(caught.value), words


@pytest.fixture
def place(tmp_path):
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def test_there_is_room_where_nothing_is_or_where_a_run_was_stopped(place, tmp_path):
    require_room(tmp_path / "new", overwrite=False)
    require_room(place, overwrite=False)
    (place / LOCK_NAME).touch()
    require_room(place, overwrite=False)
    (place / "checkpoint").mkdir()
    (place / "log.jsonl").touch()
    require_room(place, overwrite=False)
    assert (place / "log.jsonl").exists()


def test_what_could_not_be_written_is_refused_before_the_work(place, tmp_path):
    with pytest.raises(FileError, match="must be a folder that exists"):
        require_room(tmp_path / "no" / "run", overwrite=True)
    (place / "thesis.tex").touch()
    with pytest.raises(FileError, match="exists already"):
        require_room(place, overwrite=False)
    with pytest.raises(FileError, match="is not a run folder, so it stays"):
        require_room(place, overwrite=True)
    (place / "policy").mkdir()
    (place / "policy" / "policy.json").touch()
    assert holds_policy(place)
    require_room(place, overwrite=True)
