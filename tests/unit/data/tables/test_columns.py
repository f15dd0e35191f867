"""Data by the columns that somebody named: a folder, a table, or a table like another."""

import inspect
from dataclasses import fields, replace

import pytest
from small_worlds import ward

import etips
from etips.data.tables.columns import TableColumns, as_read, read_columns, read_data, require_log
from etips.data.tables.table_fields import KINDS
from etips.errors import FileError, SettingError
from etips.files.toml_writer import format_toml

NAMED = TableColumns(
    stay="stay", step="step", action="action", loss="loss", static=("age", "weight")
)


@pytest.fixture
def place(tmp_path):
    data = ward(n_stays=8)
    data.save(tmp_path / "log")
    etips.write_table(data, tmp_path / "log.csv")
    return tmp_path


def test_what_names_columns_is_told_apart_from_the_rest():
    columns = TableColumns(stay="id", static=("age", "weight"), lag=0, missing="refuse")
    assert columns.named == {"stay", "static"}
    assert columns.given == {
        "stay": "id",
        "static": ("age", "weight"),
        "missing": "refuse",
        "lag": 0,
    }
    assert TableColumns().given == {}


def test_there_is_a_field_for_every_argument_of_read_table():
    arguments = set(inspect.signature(etips.read_table).parameters) - {"table", "like"}
    own = {field.name for field in fields(TableColumns)}
    assert arguments <= own
    assert own == set(KINDS)


TEXTS = {
    "action": "RXASP, RXHEP",
    "dose": "fluid,vaso",
    "bins": 4,
    "loss": " died ",
    "static": "age",
    "features": "R*,AGE",
    "combine": "urine=sum, map=mean",
    "every": "4h",
    "actions": "none, some",
    "n_actions": 2,
}


def test_texts_of_a_command_line_and_a_file_say_the_same(tmp_path):
    columns = TableColumns.from_texts({**TEXTS, "stay": None})
    assert columns.action == ("RXASP", "RXHEP")
    assert columns.loss == "died"
    assert columns.combine == {"urine": "sum", "map": "mean"}
    assert columns.stay is None
    (tmp_path / "table.toml").write_text(format_toml({"data": columns.to_document()}))
    assert read_columns(tmp_path / "table.toml") == columns
    (tmp_path / "plain.toml").write_text(format_toml(columns.to_document()))
    assert read_columns(tmp_path / "plain.toml") == columns


def test_one_column_is_a_text_in_a_file():
    columns = TableColumns(action=("a",), static=("age",))
    assert columns.to_document() == {"action": "a", "static": ["age"]}
    assert TableColumns.from_document({"action": "a", "static": ["age"]}) == columns


def test_a_file_of_columns_is_refused_by_its_place(tmp_path):
    (tmp_path / "table.toml").write_text("[data]\nstays = 'x'")
    with pytest.raises(
        FileError, match=r"table\.toml: data\.stays is not a key\. Do you mean stay\?"
    ):
        read_columns(tmp_path / "table.toml")


def test_options_go_over_what_stands_below_and_alternatives_replace_each_other():
    below = TableColumns(stay="id", action=("a",), loss="died", lag=0)
    above = TableColumns(dose=("fluid",), reward="alive", lag=1)
    assert above.over(below) == TableColumns(stay="id", dose=("fluid",), reward="alive", lag=1)
    assert TableColumns().over(below) == below


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
    for columns, name in (
        (TableColumns(lag=0), "--lag"),
        (TableColumns(static=("x",)), "--static"),
    ):
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
        TableColumns(missing_loss="forget")


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
    require_log(place / "log.csv", TableColumns(dose=("fluid",), reward="alive"))
    with pytest.raises(
        SettingError, match=r"^--loss \(or --reward\): must name columns.*etips check"
    ):
        require_log(place / "log.csv", TableColumns(action=("action",)))


def test_a_table_is_read_as_the_policy_was_told_unless_somebody_says_otherwise(place):
    like = ward(n_stays=8).schema
    weight, drop = TableColumns(missing_loss="weight"), TableColumns(missing_loss="drop")
    for data in (place / "log", place / "log.csv"):
        assert read_data(data, TableColumns(), like=like, earlier=[weight]).missing_loss == "weight"
        assert read_data(data, drop, like=like, earlier=[weight]).missing_loss == "drop"
        with pytest.raises(SettingError, match=r"^--missing-loss: is drop for one"):
            read_data(data, TableColumns(), like=like, earlier=[weight, TableColumns()])


def test_how_columns_are_read_is_for_the_policy_to_say(place):
    like, told = ward(n_stays=8).schema, TableColumns(every="4h", missing="refuse")
    for same in (TableColumns(every="4h"), TableColumns(missing="refuse"), TableColumns(bins=5)):
        assert read_data(place / "log.csv", same, like=like, earlier=[told]).n_stays == 8
    for other in (TableColumns(every="2h"), TableColumns(missing="carry"), TableColumns(bins=4)):
        with pytest.raises(SettingError, match=r"^--\w+: must be as in the data .* Leave it out"):
            read_data(place / "log.csv", other, like=like, earlier=[told])


def test_a_run_records_what_its_data_settled(place):
    stays = read_data(place / "log", TableColumns(missing_loss="weight", lag=0))
    assert as_read(TableColumns(), stays) == TableColumns(missing_loss="weight", lag=0)
    plain = read_data(place / "log", TableColumns())
    assert as_read(TableColumns(), plain) == TableColumns(lag=1)
