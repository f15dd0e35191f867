"""A run keeps what it was told in config.toml, and another run can be told the same by it."""

import re
import tomllib

import pyarrow.parquet as pq
import pytest
from small_worlds import ward
from typer.testing import CliRunner

import etips
from etips.cli.main import app

TINY = ("hidden=4", "epochs=1", "n_folds=2", "policy.batch_size=64")


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fit(*arguments):
    result = call("fit", *arguments)
    assert result.exit_code == 0, (result.output, result.exception)


def refuse(*arguments):
    result = call("fit", *arguments)
    assert result.exit_code == 2, (result.output, result.exception)
    assert len(result.stderr.splitlines()) == 1
    return result.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A log as a folder and as a table, and a run on each with settings of its own."""
    folder = tmp_path_factory.mktemp("work")
    data = ward(n_stays=16)
    data.save(folder / "log")
    etips.write_table(data, folder / "log.csv")
    given = [part for entry in TINY for part in ("--set", entry)]
    common = ("--method", "direct", "--seed", 5, "--device", "cpu", *given)
    fit(folder / "log", "--out", folder / "run", *common)
    fit(folder / "log.csv", "--out", folder / "table-run", *common, *COLUMNS)
    return folder


COLUMNS = (
    *("--stay", "stay", "--step", "step", "--action", "action", "--loss", "loss"),
    *("--static", "age, weight", "--propensity", "propensity", "--lag", 0),
)


def weights(run):
    return (run / "policy" / "weights.safetensors").read_bytes()


def test_a_run_keeps_what_it_was_told(place):
    found = tomllib.loads((place / "run" / "config.toml").read_text())
    assert (found["method"], found["seed"], found["device"]) == ("direct", 5, "cpu")
    settings = {"hidden": 4, "epochs": 1, "n_folds": 2, "policy": {"batch_size": 64}}
    assert found["settings"] == settings
    assert found["data"]["lag"] == 1
    assert len(found["data"]["fingerprint"]) == 64
    assert set(found["versions"]) == {"etips", "torch", "numpy", "python"}


def test_a_run_on_a_table_keeps_its_columns(place):
    data = tomllib.loads((place / "table-run" / "config.toml").read_text())["data"]
    data.pop("fingerprint")
    roles = {name: name for name in ("stay", "step", "action", "loss", "propensity")}
    assert data == {**roles, "static": ["age", "weight"], "lag": 0}


def test_the_config_is_for_its_owner_only(place):
    assert (place / "run" / "config.toml").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("data", "run"), [("log", "run"), ("log.csv", "table-run")])
def test_a_run_told_by_the_config_of_another_is_the_same(data, run, place, tmp_path):
    fit(place / data, "--out", tmp_path / "again", "--config", place / run / "config.toml")
    assert weights(tmp_path / "again") == weights(place / run)
    first, second = ((r / "config.toml").read_text() for r in (place / run, tmp_path / "again"))
    assert first == second


def test_options_go_over_the_config(place, tmp_path):
    options = ("--set", "hidden=5", "--seed", 6, "--lag", 0, "--device", "auto")
    config = ("--config", place / "run" / "config.toml")
    fit(place / "log", "--out", tmp_path / "run", *config, *options)
    found = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert found["settings"]["hidden"] == 5
    assert found["settings"]["epochs"] == 1
    assert (found["seed"], found["device"], found["data"]["lag"]) == (6, "auto", 0)


def test_a_method_of_its_own_goes_over_the_config(place, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('method = "most-frequent"\n')
    fit(place / "log", "--out", tmp_path / "run", "--config", path, "--method", "random")
    found = tomllib.loads((tmp_path / "run" / "config.toml").read_text())
    assert found["method"] == "random"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("method = ", r"config.toml: TOML is not valid at "),
        ('method = "magic"', "config.toml: method must be one of"),
        ("colour = 1", "config.toml: colour is not a key"),
        ("[settings]\ncolour = 1", "config.toml: colour is not a setting of auto"),
        ("[settings]\nhidden = 0", "config.toml: hidden must be at least 1"),
        ('[settings]\nhidden = "x"', "config.toml: hidden must be a whole number"),
        ("[settings.policy]\nepochs = 0", "config.toml: epochs must be at least 1"),
        ('device = "tpu"', "config.toml: device must be auto, cpu, cuda"),
        ("device = [1]", "config.toml: device must be auto, cpu, cuda"),
        ("data = 3", "config.toml: data must be a table"),
        ("[data]\nlag = 2", "config.toml: data.lag must be 0 or 1"),
        ("[data]\nlag = true", "config.toml: data.lag must be 0 or 1"),
        ('[data]\nstatic = "age"', "config.toml: data.static must be a list"),
        ("[data]\nstay = 3", "config.toml: data.stay must be a text"),
        ("[data]\npath = 3", "config.toml: data.path is not a key"),
        ('[data]\nstay = "stay"', "column options: go with a table"),
        ("seed = -1", "seed: must be in 0"),
    ],
)
def test_a_config_that_makes_no_sense_is_refused_in_one_line(text, words, place, tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(text)
    line = refuse(place / "log", "--out", tmp_path / "run", "--config", path)
    assert re.search(words, line)
    assert not (tmp_path / "run").exists()


def test_a_setting_of_the_command_line_is_refused_as_such(place, tmp_path):
    config = ("--config", place / "run" / "config.toml")
    line = refuse(place / "log", "--out", tmp_path / "run", *config, "--set", "hidden=0")
    assert "--set hidden: must be at least 1" in line


def test_settings_of_the_config_must_fit_a_method_of_the_command_line(place, tmp_path):
    config = ("--config", place / "run" / "config.toml")
    line = refuse(place / "log", "--out", tmp_path / "run", *config, "--method", "random")
    assert "config.toml: has 4 faults: (1) hidden is no setting: random has no settings" in line


def test_a_random_run_recommends_what_its_seed_draws(place, tmp_path):
    data = ward(n_stays=16)
    for seed in (1, 2):
        run = tmp_path / f"{seed}"
        fit(place / "log", "--out", run, "--method", "random", "--seed", seed)
        files = [tmp_path / f"{seed}-{number}.parquet" for number in (0, 1)]
        for file in files:
            assert call("recommend", run, place / "log", "--out", file).exit_code == 0
        found = [pq.read_table(file)["recommended_action"].to_numpy() for file in files]
        assert (found[0] == found[1]).all()
        assert (found[0] == etips.RandomPolicy(seed=seed).fit(data).predict(data)).all()
