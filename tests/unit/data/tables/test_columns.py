"""Data by the columns that somebody named: a folder, a table, or a table like another."""

from dataclasses import replace

import pytest
from small_worlds import ward

import etips
from etips.data.tables.columns import TableColumns, read_data, require_log
from etips.errors import FileError, SettingError

NAMED = TableColumns(stay="stay", step="step", action="action", loss="loss", static="age, weight")


@pytest.fixture
def place(tmp_path):
    data = ward(n_stays=8)
    data.save(tmp_path / "log")
    etips.write_table(data, tmp_path / "log.csv")
    return tmp_path


def test_named_columns_are_told_apart_from_the_lag():
    columns = TableColumns(stay="id", static="age, weight", lag=0)
    assert columns.named == {"stay": "id", "static": "age, weight"}
    assert columns.static_names == ["age", "weight"]
    assert TableColumns().named == {}
    assert TableColumns().static_names == []


def test_a_folder_knows_its_columns_and_takes_another_lag(place):
    assert read_data(place / "log", TableColumns()).lag == 1
    assert read_data(place / "log", TableColumns(lag=0)).lag == 0
    with pytest.raises(SettingError, match=r"^column options: go with a table"):
        read_data(place / "log", NAMED)
    with pytest.raises(FileError, match="so it is no Trajectories folder"):
        read_data(place, TableColumns())


def test_a_table_is_read_by_its_columns(place):
    stays = read_data(place / "log.csv", NAMED)
    assert (stays.n_stays, stays.lag) == (8, 1)
    assert stays.schema.static == ("age", "weight")


def test_a_table_is_read_like_the_data_that_a_policy_knows(place):
    like = ward(n_stays=8).schema
    assert read_data(place / "log.csv", TableColumns(stay="stay"), like=like).schema.lag == 1
    for columns, name in ((TableColumns(lag=0), "--lag"), (TableColumns(static="x"), "--static")):
        with pytest.raises(SettingError, match=rf"^{name}: must be as in the data"):
            read_data(place / "log.csv", columns, like=like)


def test_a_folder_and_a_table_take_the_word_on_missing_losses(place):
    weight = TableColumns(missing_loss="weight")
    assert read_data(place / "log", weight).missing_loss == "weight"
    assert (
        read_data(place / "log.csv", replace(NAMED, missing_loss="weight")).missing_loss == "weight"
    )
    assert read_data(place / "log.csv", NAMED).missing_loss == "drop"
    with pytest.raises(SettingError, match=r'^missing_loss: must be "drop" or "weight"'):
        read_data(place / "log", TableColumns(missing_loss="forget"))


def test_a_negative_control_is_no_feature_unless_the_policy_sees_it(place):
    like = ward(n_stays=8).schema
    name = like.sequence[0]
    own = read_data(place / "log.csv", replace(NAMED, negative_control=name))
    assert name not in own.schema.sequence
    assert own.negative_control is not None
    seen = read_data(place / "log.csv", TableColumns(negative_control=name), like=like)
    assert name in seen.schema.sequence
    assert seen.negative_control is None
    assert read_data(place / "log", TableColumns(negative_control=name)).n_stays == 8


def test_a_table_to_learn_from_needs_actions_and_losses(place):
    require_log(place / "log", TableColumns())
    require_log(place / "log.csv", NAMED)
    require_log(place / "nowhere.csv", TableColumns())  # refused where it is read
    with pytest.raises(SettingError, match=r"^--action, --loss: must name columns"):
        require_log(place / "log.csv", TableColumns(action="action"))
