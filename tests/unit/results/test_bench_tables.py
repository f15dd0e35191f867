"""The tables of a bench: complete, narrow enough, failures with their reasons."""

from dataclasses import replace

from told_benches import BENCH, STANDING

from etips.results.bench_result import (
    as_markdown,
    failures,
    gain_chart,
    gap,
    summary_table,
    world_table,
)


def test_the_summary_tells_first_ours_and_the_default():
    assert summary_table(BENCH).rows == (("clinic-usual", "owl", "owl", "0", "yes", "-"),)
    assert gap(STANDING.row("lightgbm")) == "+0.1000 ± 0.0100"


def test_a_world_has_a_line_for_everybody_and_accuracy_where_labels_are():
    table = world_table(STANDING)
    assert [row[0] for row in table.rows] == ["owl", "lightgbm", "etips"]
    assert [row[1] for row in table.rows] == ["1st", "", "failed"]
    assert table.rows[0][2] == "0.4000"
    labelled = world_table(replace(STANDING, measure="accuracy", clinicians_stay=0.2))
    assert labelled.rows[0][2] == "0.600"
    assert "stay" in labelled.columns
    assert failures(STANDING) == ["etips: <b>why</b>"]


def test_the_chart_shows_shares_of_what_is_possible():
    (series,) = gain_chart(BENCH).series
    assert series.x == ("owl", "lightgbm")
    assert [round(value, 3) for value in series.y] == [0.5, 0.0]
    assert gain_chart(replace(BENCH, standings=(replace(STANDING, best=None),))).series == ()


def test_the_document_names_the_machine_the_absent_and_the_reasons():
    text = as_markdown(replace(BENCH, standings=(replace(STANDING, why=("Because.",)),)))
    for words in ("A small run.", "cores 2", "obp-ipw", "- Because.", "| owl | 1st | 0.4000 |"):
        assert words in text


def test_the_document_is_the_same_in_whatever_order_the_machine_was_told():
    one, other = {"python": "3", "cores": 2}, {"cores": 2, "python": "3"}
    assert as_markdown(replace(BENCH, machine=one)) == as_markdown(replace(BENCH, machine=other))
