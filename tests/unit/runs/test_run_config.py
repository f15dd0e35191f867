"""What a run was told, as text and back; the command that writes it is tested end to end."""

import pytest

from etips.data.tables.columns import TableColumns
from etips.errors import FileError
from etips.learn.learners.recipes import Recipe
from etips.runs.run_config import Device, RunConfig, read_config


def test_a_config_reads_back_from_its_text(tmp_path):
    columns = TableColumns(
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


def test_what_is_left_out_has_its_default(tmp_path):
    (tmp_path / "config.toml").write_text("")
    assert read_config(tmp_path / "config.toml") == RunConfig(Recipe())


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
