"""Whatever etips saved, read back."""

import pytest
from small_worlds import small, ward

from etips.errors import FileError
from etips.learn import DoublyRobust
from etips.runs.loading import load

DATA = ward()


@pytest.fixture
def folder(tmp_path):
    DoublyRobust(**small(support=0.1)).fit(DATA).save(tmp_path / "policy")
    return tmp_path / "policy"


def test_load_finds_data_policies_and_runs_and_refuses_the_rest(folder, tmp_path):
    assert load(folder).schema == DATA.schema
    run = tmp_path / "run"
    run.mkdir()
    folder.rename(run / "policy")
    assert load(run).schema == DATA.schema
    DATA.save(tmp_path / "data")
    assert load(tmp_path / "data").n_decisions == DATA.n_decisions
    with pytest.raises(FileError, match="holds neither a data set nor a policy"):
        load(tmp_path)
    with pytest.raises(FileError, match="holds neither a data set nor a policy"):
        load(tmp_path / "nowhere")
