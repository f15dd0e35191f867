"""What is said of a table, in every spelling, and data read by it."""

import inspect

import pytest
from small_worlds import ward

import etips
from etips.data.tables.reading import as_read, read_data, require_log
from etips.data.tables.table_spec import SAID, TableSpec, read_columns
from etips.errors import FileError, SettingError
from etips.files.toml import format_toml

NAMED = TableSpec(stay="stay", step="step", action="action", loss="loss", static=("age", "weight"))


@pytest.fixture
def place(tmp_path):
    data = ward(n_stays=8)
    data.save(tmp_path / "log")
    etips.write_table(data, tmp_path / "log.csv")
    return tmp_path


def test_what_was_said_is_told_apart_from_defaults():
    columns = TableSpec(stay="id", static=("age", "weight"), lag=0, missing="refuse", step=None)
    assert columns.given == {
        "stay": "id",
        "static": ("age", "weight"),
        "missing": "refuse",
        "lag": 0,
    }
    assert TableSpec().given == {}


def test_every_argument_of_read_table_has_a_field_with_the_same_default():
    parameters = inspect.signature(etips.read_table).parameters
    assert set(parameters) == {"table", "like", *SAID}
    given = {name: parameters[name].default for name in SAID}
    assert TableSpec.of_arguments(given) == TableSpec()


def test_one_name_stands_for_a_list_of_one_in_python():
    spec = TableSpec.of_arguments({"action": "dose", "static": "age", "stay": 0, "na": 99})
    assert (spec.treatment, spec.static, spec.stay, spec.na) == (("dose",), ("age",), "0", ("99",))


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
    columns = TableSpec.from_texts({**TEXTS, "stay": None})
    assert columns.action == ("RXASP", "RXHEP")
    assert columns.loss == "died"
    assert columns.combine == {"urine": "sum", "map": "mean"}
    assert columns.stay is None
    (tmp_path / "table.toml").write_text(format_toml({"data": columns.to_document()}))
    assert read_columns(tmp_path / "table.toml") == columns
    (tmp_path / "plain.toml").write_text(format_toml(columns.to_document()))
    assert read_columns(tmp_path / "plain.toml") == columns


def test_one_column_is_a_text_in_a_file():
    columns = TableSpec(action=("a",), static=("age",))
    assert columns.to_document() == {"action": "a", "static": ["age"]}
    assert TableSpec.from_document({"action": "a", "static": ["age"]}) == columns


def test_a_file_of_columns_is_refused_by_its_place(tmp_path):
    (tmp_path / "table.toml").write_text("[data]\nstays = 'x'")
    with pytest.raises(
        FileError, match=r"table\.toml: data\.stays is not a key\. Do you mean stay\?"
    ):
        read_columns(tmp_path / "table.toml")


def test_options_go_over_what_stands_below_and_alternatives_replace_each_other():
    below = TableSpec(stay="id", action=("a",), loss="died", lag=0)
    above = TableSpec(dose=("fluid",), reward="alive", lag=1)
    assert above.over(below) == TableSpec(stay="id", dose=("fluid",), reward="alive", lag=1)
    assert TableSpec().over(below) == below


def test_a_folder_knows_its_columns_and_takes_another_lag(place):
    assert read_data(place / "log", TableSpec()).lag == 1
    assert read_data(place / "log", TableSpec(lag=0)).lag == 0
    with pytest.raises(SettingError, match=r"^column options: go with a table"):
        read_data(place / "log", NAMED)
    with pytest.raises(FileError, match="so it is no Trajectories folder"):
        read_data(place, TableSpec())


def test_a_table_is_read_by_its_columns(place):
    stays = read_data(place / "log.csv", NAMED)
    assert (stays.n_stays, stays.lag) == (8, 1)
    assert stays.schema.static == ("age", "weight")


def test_a_table_is_read_like_the_data_that_a_policy_knows(place):
    like = ward(n_stays=8).schema
    assert read_data(place / "log.csv", TableSpec(stay="stay"), like=like).schema.lag == 1
    for columns, name in (
        (TableSpec(lag=0), "--lag"),
        (TableSpec(static=("x",)), "--static"),
    ):
        with pytest.raises(SettingError, match=rf"^{name}: must be as in the data"):
            read_data(place / "log.csv", columns, like=like)


def test_a_folder_and_a_table_take_the_word_on_missing_losses(place):
    weight = TableSpec(missing_loss="weight")
    assert read_data(place / "log", weight).missing_loss == "weight"
    assert read_data(place / "log.csv", NAMED.but(missing_loss="weight")).missing_loss == "weight"
    assert read_data(place / "log.csv", NAMED).missing_loss == "drop"
    with pytest.raises(SettingError, match=r'^missing_loss: must be "drop" or "weight"'):
        TableSpec(missing_loss="forget")


def test_a_negative_control_is_no_feature_unless_the_policy_sees_it(place):
    like = ward(n_stays=8).schema
    name = like.sequence[0]
    own = read_data(place / "log.csv", NAMED.but(negative_control=name))
    assert name not in own.schema.sequence
    assert own.negative_control is not None
    seen = read_data(place / "log.csv", TableSpec(negative_control=name), like=like)
    assert name in seen.schema.sequence
    assert seen.negative_control is None
    assert read_data(place / "log", TableSpec(negative_control=name)).n_stays == 8


def test_a_table_to_learn_from_needs_actions_and_losses(place):
    require_log(place / "log", TableSpec())
    require_log(place / "log.csv", NAMED)
    require_log(place / "nowhere.csv", TableSpec())  # refused where it is read
    require_log(place / "log.csv", TableSpec(dose=("fluid",), reward="alive"))
    with pytest.raises(
        SettingError, match=r"^--loss \(or --reward\): must name columns.*etips check"
    ):
        require_log(place / "log.csv", TableSpec(action=("action",)))


def test_a_table_is_read_as_the_policy_was_told_unless_somebody_says_otherwise(place):
    like = ward(n_stays=8).schema
    weight, drop = TableSpec(missing_loss="weight"), TableSpec(missing_loss="drop")
    for data in (place / "log", place / "log.csv"):
        assert read_data(data, TableSpec(), like=like, earlier=[weight]).missing_loss == "weight"
        assert read_data(data, drop, like=like, earlier=[weight]).missing_loss == "drop"
        with pytest.raises(SettingError, match=r"^--missing-loss: is drop for one"):
            read_data(data, TableSpec(), like=like, earlier=[weight, TableSpec()])


def test_how_columns_are_read_is_for_the_policy_to_say(place):
    like, told = ward(n_stays=8).schema, TableSpec(every="4h", missing="refuse")
    for same in (TableSpec(every="4h"), TableSpec(missing="refuse"), TableSpec(bins=5)):
        assert read_data(place / "log.csv", same, like=like, earlier=[told]).n_stays == 8
    for other in (TableSpec(every="2h"), TableSpec(missing="carry"), TableSpec(bins=4)):
        with pytest.raises(SettingError, match=r"^--\w+: must be as in the data .* Leave it out"):
            read_data(place / "log.csv", other, like=like, earlier=[told])


def test_a_run_records_what_its_data_settled(place):
    stays = read_data(place / "log", TableSpec(missing_loss="weight", lag=0))
    assert as_read(TableSpec(), stays) == TableSpec(missing_loss="weight", lag=0)
    plain = read_data(place / "log", TableSpec())
    assert as_read(TableSpec(), plain) == TableSpec(lag=1)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("stay", " id ", "id"),
        ("static", "age, weight,", ("age", "weight")),
        ("static", "", ()),
        ("drop", '"Remark, free", age', ("Remark, free", "age")),
        ("drop", 'cuff 5" wide,age', ('cuff 5" wide', "age")),
        ("combine", "urine = sum,map=mean", {"urine": "sum", "map": "mean"}),
    ],
)
def test_texts_become_values(name, text, value):
    assert TableSpec.from_texts({name: text}).given == {name: value}


@pytest.mark.parametrize("text", ["urine", "urine=", "=sum", "urine=sum,map"])
def test_pairs_need_a_column_and_a_word(text):
    with pytest.raises(SettingError, match=r"^combine: must be column=how, by comma"):
        TableSpec.from_texts({"combine": text})


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("stay", 3, "must be a text"),
        ("static", "age", "must be a list of columns"),
        ("static", [1], "must be a list of columns"),
        ("actions", "none", "must be a list of names"),
        ("action", 3, "must be a text or a list of columns"),
        ("missing", "guess", 'must be "carry" or "refuse"'),
        ("missing_loss", 1, 'must be "drop" or "weight"'),
        ("lag", 2, "must be 0 or 1"),
        ("lag", True, "must be 0 or 1"),
        ("bins", 1, "must be a whole number of 2 or more"),
        ("bins", "four", "must be a whole number of 2 or more"),
        ("combine", "urine=sum", "must be a table of columns, each with a text"),
        ("combine", {"urine": 3}, "must be a table of columns, each with a text"),
    ],
)
def test_a_value_of_another_kind_is_refused(name, value, rule):
    with pytest.raises(SettingError) as refusal:
        TableSpec(**{name: value})
    assert str(refusal.value) == f"{name}: {rule}."


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"loss": "l", "reward": "r"}, r"^loss, reward: name one of them\.$"),
        ({"action": ("a",), "dose": ("d",)}, r"^action, dose: name one of them\."),
    ],
)
def test_what_no_table_could_mend_is_refused(more, message):
    with pytest.raises(SettingError, match=message):
        TableSpec(**more).require_consistent()
