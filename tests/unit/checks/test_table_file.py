"""A table.toml says of every line whether somebody said it, and reads back as it was."""

import tomllib
from dataclasses import fields

from etips.checks.guessing import Guess
from etips.checks.suspicion import Suspect
from etips.checks.table_file import _WORDS, format_table_file
from etips.data.tables.columns import TableColumns

COLUMNS = TableColumns(
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
    assert TableColumns.from_document(tomllib.loads(text)["data"]) == COLUMNS


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
    assert TableColumns.from_document(tomllib.loads(text)["data"]) == COLUMNS


def test_there_are_words_for_every_field():
    assert set(_WORDS) == {own.name for own in fields(TableColumns)}
