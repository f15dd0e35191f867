"""The run folder: what it holds, who may write it, and how a service opens it."""

import pytest
from small_worlds import small, ward

from etips.data.tables.columns import TableColumns
from etips.learn import DoublyRobust
from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.recipes import Recipe
from etips.policies.recommendations import Recommendations
from etips.runs.folder import RunFolder
from etips.runs.run_config import RunConfig

DATA = ward()
PATH = (Candidate(0.3, None, 0.4, 0.01, 1.0, 90.0, chosen=True),)


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


def test_a_service_recommends_from_a_run_without_the_command_line(folder, policy):
    write(folder, policy)
    advice = Recommendations.of(folder.open_policy(), DATA.without_log())
    assert advice.table().num_rows == len(advice.advised)


def test_the_clinicians_are_kept_where_they_were_fitted_and_go_where_they_were_not(folder, policy):
    write(folder, policy)
    imitation = RunFolder(folder.place / "propensity").open_policy()
    assert imitation.predict_proba(DATA) == pytest.approx(policy.propensities(DATA))
    constant = type(policy)(schema=policy.schema, kind="constant", constant=1)
    write(folder, constant, overwrite=True)
    assert not (folder.place / "propensity").exists()


def test_results_of_an_earlier_policy_go(folder, policy):
    folder.results.write_text("of an earlier policy")
    write(folder, policy)
    assert not folder.results.exists()


def test_a_policy_of_a_killed_run_is_replaced_without_asking(folder, policy):
    write(folder, policy)
    write(folder, policy)
    assert folder.has_policy


def test_a_folder_that_is_itself_a_policy_is_opened(tmp_path, policy, folder):
    write(folder, policy)
    assert RunFolder(folder.place / "policy").open_policy().schema == DATA.schema


def test_a_run_without_config_or_path_has_none(folder):
    assert folder.read_told() == {}
    assert folder.read_path() == ()
    assert not folder.has_policy


def test_a_run_tells_how_its_table_was_read(folder, policy):
    assert folder.read_columns() == TableColumns()
    write(folder, policy)
    assert folder.read_columns() == TableColumns()
    folder.config.write_text('[data]\nstay = "id"\nmissing_loss = "weight"\nfingerprint = "0"\n')
    assert folder.read_columns() == TableColumns(stay="id", missing_loss="weight")
