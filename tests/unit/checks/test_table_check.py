"""What a check says: eighty columns, what needs an eye first, a command to type last."""

import json

import pytest

from etips.checks.feature_summary import FeatureSummary
from etips.checks.guessing import Guess
from etips.checks.suspicion import Suspect
from etips.checks.table_check import ActionCount, Contrast, TableCheck, next_lines, require_free
from etips.data.tables.columns import TableColumns
from etips.errors import FileError

MADE = TableCheck(
    name="trial.csv",
    n_rows=500,
    n_columns=112,
    columns=TableColumns(action=("RXASP", "RXHEP"), loss="DIED", features=("AGE", "SEX")),
    guesses=(
        Guess("loss", "DIED", "is named like an outcome"),
        Guess("features", ("AGE", "SEX"), "all but what may be known only later"),
    ),
    suspects=tuple(Suspect(f"DEAD{n}", "is named like an outcome") for n in range(60)),
    features=(
        FeatureSummary("AGE", "number", missing=None),
        FeatureSummary("RSBP", "number", missing=12),
        FeatureSummary("SEX", "category", n_levels=2, levels=("F", "M")),
        FeatureSummary("[bold]odd", "yes/no", static=True),
    ),
    remarks=("12 values were carried forward",),
    n_stays=500,
    n_decisions=500,
    lag=0,
    lost_to_lag=0,
    mean_loss=0.25,
    actions=(ActionCount("Y, N", 300, 300), ActionCount("N, H", None, None)),
    contrasts=(Contrast("Y, N", 0.0512, 298.4),),
)


def test_it_is_eighty_columns_wide_and_says_everything_once():
    text = str(MADE)
    assert max(len(line) for line in text.splitlines()) <= 80
    for words in (
        "trial.csv: 500 rows, 112 columns",
        "and 52 more",
        "guessed: is named like an outcome",
        "RSBP (12 % missing)",
        "AGE (few or nearly all missing)",
        "SEX (F|M)",
        "[bold]odd",
        "yes/no, static (1)",
        "always Y, N",
        "0.0512",
        "12 values were carried forward",
    ):
        assert text.count(words) == 1, words


def test_few_people_are_not_counted():
    row = next(line for line in str(MADE).splitlines() if "N, H" in line)
    assert row.split() == ["N,", "H", "not", "shown", "-", "not", "shown"]


def test_what_needs_an_eye_comes_first():
    text = str(MADE)
    order = [text.index(words) for words in ("Columns to look at", "Read as", "Features")]
    assert order == sorted(order)


def test_what_to_do_next_is_a_command_to_type():
    lines = next_lines(MADE, data="my trial.csv", place="table.toml")
    assert "loss, features" in lines[0]
    assert lines[-3:] == [
        "etips fit 'my trial.csv' --table table.toml --hold-out 0.3 --out run",
        "etips evaluate run 'my trial.csv'",
        "etips report run --out report.html",
    ]
    faulty = TableCheck("log.csv", 5, 2, TableColumns(), faults=("action: must name a column",))
    lines = next_lines(faulty, data="log.csv", place="table.toml")
    assert lines[-1].startswith("etips check log.csv --table table.toml")
    assert "Faults (1)" in str(faulty)


def test_it_is_json_without_odd_numbers():
    document = json.loads(json.dumps(MADE.to_json(), allow_nan=False))
    assert document["columns"] == {
        "action": ["RXASP", "RXHEP"], "loss": "DIED", "features": ["AGE", "SEX"],
    }  # fmt: skip
    assert document["actions"][1] == {"name": "N, H", "decisions": None, "people": None}


def test_a_file_that_is_there_stays_unless_asked(tmp_path):
    with pytest.raises(FileError, match="must be a folder that exists"):
        require_free(tmp_path / "none" / "table.toml", overwrite=True)
    require_free(tmp_path / "table.toml", overwrite=False)
    (tmp_path / "table.toml").touch()
    require_free(tmp_path / "table.toml", overwrite=True)
    with pytest.raises(FileError, match=r"exists already\. Use it with --table"):
        require_free(tmp_path / "table.toml", overwrite=False)
