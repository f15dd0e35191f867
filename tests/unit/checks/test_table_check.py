"""What a check shows, and its table.toml."""

import json
import tomllib

import pytest

from etips.checks.column_facts import ColumnFacts
from etips.checks.guessing import Guess
from etips.checks.suspects import Suspect
from etips.checks.table_check import (
    ActionCount,
    Contrast,
    FeatureSummary,
    TableCheck,
    feature_names,
    format_table_file,
    next_lines,
    require_free,
    summarize_features,
)
from etips.data.recipe import ColumnKind
from etips.data.tables.table_spec import SAID, TableSpec
from etips.errors import FileError

MADE = TableCheck(
    name="trial.csv",
    n_rows=500,
    n_columns=112,
    columns=TableSpec(action=("RXASP", "RXHEP"), loss="DIED", features=("AGE", "SEX")),
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
    faulty = TableCheck("log.csv", 5, 2, TableSpec(), faults=("action: must name a column",))
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


COLUMNS = TableSpec(
    stay="id",
    step="t",
    action=("RXASP", "RXHEP"),
    loss='odd "name" # here',
    static=("age",),
    combine={"urine": "sum"},
    lag=0,
)


def test_it_reads_back():
    text = format_table_file(COLUMNS, (), (), "log.csv")
    assert TableSpec.from_document(tomllib.loads(text)["data"]) == COLUMNS


def test_guesses_are_marked_with_their_reason_and_the_rest_is_not():
    guess = Guess("stay", "id", "is named like an identifier")
    lines = format_table_file(COLUMNS, (guess,), (), "log.csv").splitlines()
    marked = [line for line in lines if "GUESSED:" in line]
    assert len(marked) == 1
    assert marked[0].endswith("GUESSED: is named like an identifier")
    assert lines[lines.index(marked[0]) + 1] == 'stay = "id"'


def test_suspects_that_are_kept_are_named_and_no_name_breaks_a_line():
    suspect = Suspect("bad\nname", "is named like an outcome, known only later")
    text = format_table_file(COLUMNS, (), (suspect,), "log\n.csv")
    assert "# bad name: is named like an outcome, known only later. See drop." in text
    assert TableSpec.from_document(tomllib.loads(text)["data"]) == COLUMNS


def test_there_are_words_for_every_field():
    assert all(TableSpec.model_fields[name].description for name in SAID)


FACTS = [
    ColumnFacts("id", 0, "number", 100, n_distinct=100, whole=True),
    ColumnFacts("age", 1, "number", 100, n_missing=4, n_distinct=60),
    ColumnFacts("lactate", 2, "number", 100, n_missing=40, n_distinct=50),
    ColumnFacts("crp", 3, "number", 100, n_missing=95, n_distinct=5),
    ColumnFacts("sex", 4, "text", 100, n_distinct=2, levels=("f", "m")),
    ColumnFacts("ward", 5, "number", 100, n_distinct=9, whole=True),
    ColumnFacts("town", 6, "text", 100, n_distinct=12, levels=tuple("abcdefghijkl")),
    ColumnFacts("note", 7, "text", 100, n_distinct=99),
]


def test_every_column_without_a_part_is_a_feature_unless_it_is_dropped():
    columns = TableSpec(stay="id", static=("age",), drop=("no*",))
    assert feature_names(FACTS, columns) == ("age", "lactate", "crp", "sex", "ward", "town")
    only = TableSpec(stay="id", static=("age",), features=("l*", "sex"))
    assert feature_names(FACTS, only) == ("age", "lactate", "sex")


def test_kinds_gaps_and_levels_are_told_and_few_are_not():
    made = {
        own.name: own
        for own in summarize_features(FACTS, TableSpec(stay="id", categorical=("ward",)))
    }
    assert made["lactate"].missing == 40
    assert made["age"].missing is None  # four people
    assert made["crp"].missing is None  # five have it
    assert made["sex"].missing == 0
    assert (made["sex"].kind, made["sex"].levels) == ("category", ("f", "m"))
    assert (made["ward"].kind, made["ward"].n_levels) == ("category", 9)
    assert made["town"].levels == ()  # twelve of a hundred rows: each may be somebody
    assert made["note"].n_levels == 99


def test_how_a_column_was_read_goes_over_how_it_looks():
    kinds = {"sex": ColumnKind("yes_no", levels=("f", "m")), "age": ColumnKind("years")}
    made = {own.name: own.kind for own in summarize_features(FACTS, TableSpec(), kinds)}
    assert (made["sex"], made["age"], made["lactate"]) == ("yes/no", "time", "number")
