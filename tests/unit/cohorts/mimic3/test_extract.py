"""Section 4.2: what is read from the raw tables."""

import contextlib

import polars as pl
import pytest

from etips.cohorts.databases import open_source
from etips.cohorts.mimic.bedside import read_block
from etips.cohorts.mimic.items import DEVICE_TEXTS
from etips.cohorts.mimic3 import concepts, extract
from etips.cohorts.mimic3.switches import CLEAN, PAPER
from etips.cohorts.mimic3.tables import needed, open_tables

STAY, T = 200001, "2150-01-02 00:00:00"
EMPTY = {name: ",".join(columns) + "\n" for name, columns in needed(CLEAN.reading).items()}


def source(folder, **rows):
    """Tables with only the given lines."""
    for name, header in EMPTY.items():
        (folder / f"{name}.csv").write_text(header + "".join(f"{r}\n" for r in rows.get(name, ())))
    return contextlib.closing(open_source(folder))


def charted(folder, profile, *lines):
    """The kept chart rows of (item, value, valuenum), by item."""
    rows = [f"{STAY},{T},{item},{value},{number},0" for item, value, number in lines]
    with source(folder, chartevents=rows) as opened:
        tables = open_tables(opened, profile.reading)
        items = concepts.select(profile.reading)
        extract.store_large(opened, tables, items, profile.reading, [STAY])
        block = read_block(opened.kept, 0, 10**9, extract.kept_tables(profile.reading))
    return {row["itemid"]: row for row in block.chart.iter_rows(named=True)}


@pytest.mark.parametrize(("text", "code"), [*DEVICE_TEXTS.items(), ("Other", None)])
def test_device_texts_become_codes_and_an_empty_text_is_one(tmp_path, text, code):
    found = charted(tmp_path, PAPER, (467, f'"{text}"', ""))[467]
    assert found["device"] == code
    assert found["has_text"]


def test_a_missing_text_is_not_an_empty_one(tmp_path):
    found = charted(tmp_path, PAPER, (467, "", "3"))[467]
    assert found["device"] is None
    assert not found["has_text"]


def test_device_texts_count_exactly_in_the_scripts_and_whatever_their_case_in_clean(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    lines = [(467, "face tent", ""), (211, "None", "80")]
    paper, clean = charted(tmp_path / "a", PAPER, *lines), charted(tmp_path / "b", CLEAN, *lines)
    assert (paper[467]["device"], clean[467]["device"]) == (None, 3)
    assert (paper[211]["device"], clean[211]["device"]) == (0, None)


def test_text_decides_on_ventilation_and_extubation(tmp_path):
    found = charted(
        tmp_path, PAPER, (640, "Extubated", ""), (720, "Other/Remarks", ""),
        (467, "Ventilator", ""), (449, "7", "7"),
    )  # fmt: skip
    assert [found[i]["ventilated"] for i in (640, 720, 467, 449)] == [False, False, True, True]
    assert [found[i]["extubated"] for i in (640, 720, 467, 449)] == [True, False, False, False]


def test_pounds_and_untestable_answers_in_clean(tmp_path):
    found = charted(
        tmp_path, CLEAN, (226531, "100", "100"), (223900, "No Response-ETT", "1"),
        (220739, "To Speech", "3"),
    )  # fmt: skip
    assert found[226531]["number"] == pytest.approx(45.359237)
    assert found[223900]["number"] is None
    assert found[220739]["number"] == 3


def test_rows_marked_as_errors_are_dropped_in_clean_only(tmp_path):
    rows = [f"{STAY},{T},211,80,80,1"]
    for profile, kept in ((PAPER, 1), (CLEAN, 0)):
        with source(tmp_path, chartevents=rows) as opened:
            tables = open_tables(opened, profile.reading)
            extract.store_large(
                opened, tables, concepts.select(profile.reading), profile.reading, [STAY]
            )
            assert opened.kept.rows("chart").height == kept


@pytest.mark.parametrize(
    ("time", "stays"),
    [
        ("2149-12-31 00:00:00", [1]),  # a day before the first stay begins
        ("2149-12-30 23:59:59", []),
        ("2150-01-02 12:00:00", [1, 2]),  # within a day of both
        ("2150-01-05 00:00:00", [2]),
        ("2150-01-05 00:00:01", []),
    ],
)
def test_a_lab_result_attaches_to_every_stay_within_a_day(tmp_path, time, stays):
    icu = [
        "7,70,1,2150-01-01 00:00:00,2150-01-02 00:00:00",
        "7,70,2,2150-01-03 00:00:00,2150-01-04 00:00:00",
    ]
    with source(tmp_path, icustays=icu, labevents=[f"70,{time},50971,4.0,4"]) as opened:
        tables = open_tables(opened, PAPER.reading)
        extract.store_large(opened, tables, concepts.select(PAPER.reading), PAPER.reading, [1, 2])
        assert sorted(opened.kept.rows("labs")["stay"]) == stays


DRUGS = [
    ("Vancomycin", "IV", "MAIN", True), ("Piperacillin-Tazobactam", "IV", "MAIN", True),
    ("CefTRIAXone", "IV", "MAIN", True), ("Meropenem", "IV", "MAIN", True),
    ("Ciprofloxacin", "PO", "MAIN", True), ("Sulfameth/Trimethoprim", "PO", "MAIN", True),
    ("Penicillamine", "PO", "MAIN", False), ("Mitomycin", "IV", "MAIN", False),
    ("Erythromycin 0.5% Ophth Oint", "OU", "MAIN", False),
    ("Ciprofloxacin", "BOTH EARS", "MAIN", False),
    ("Vancomycin", "IV", "BASE", False), ("Heparin", "SC", "MAIN", False),
    ("Neomycin Irrigation", "IR", "MAIN", False), ("Clindamycin Gel", "TP", "MAIN", False),
]  # fmt: skip


def test_antibiotics_by_name(tmp_path):
    rows = [
        f"{i},70,{STAY},{T},000000,{drug},{route},{kind}"
        for i, (drug, route, kind, _) in enumerate(DRUGS)
    ]
    with source(tmp_path, prescriptions=rows) as opened:
        tables = open_tables(opened, CLEAN.reading)
        found = extract.read_antibiotics(
            opened, tables, concepts.select(CLEAN.reading), CLEAN.reading
        )
    assert found["entry"].to_list() == [i for i, line in enumerate(DRUGS) if line[3]]


def test_antibiotics_by_code_keep_leading_zeros(tmp_path):
    rows = [f"{i},70,,{T},{code},x,IV,MAIN" for i, code in enumerate(["009326", "9326", "043952"])]
    with source(tmp_path, prescriptions=rows) as opened:
        tables = open_tables(opened, PAPER.reading)
        found = extract.read_antibiotics(
            opened, tables, concepts.select(PAPER.reading), PAPER.reading
        )
    assert found["entry"].to_list() == [0]
    assert found["stay"].dtype == pl.Int64


def test_line_tips_count_whatever_their_value_in_the_scripts_and_only_if_taken_in_clean(tmp_path):
    tips = [f"{STAY},{T},225732,{v},{v},0" for v in (0, 1)]
    done = [f"{STAY},{T},{T},225401"]
    for profile, expected in ((PAPER, 2), (CLEAN, 2)):
        with source(tmp_path, chartevents=tips, procedureevents_mv=done) as opened:
            tables, items = open_tables(opened, profile.reading), concepts.select(profile.reading)
            extract.store_large(opened, tables, items, profile.reading, [])
            found = extract.read_cultures(opened.kept, items, profile.reading)
            assert ("procedureevents_mv" in tables) is (profile is CLEAN)
        assert found.height == expected  # clean: one tip taken, one culture from procedures


def test_a_culture_counts_even_with_neither_a_text_nor_a_number(tmp_path):
    """Section 4.2: the charted value is not looked at; a vital sign without one is nothing."""
    rows = [f"{STAY},{T},938,,,0", f"{STAY},{T},211,,,0"]
    with source(tmp_path, chartevents=rows) as opened:
        tables = open_tables(opened, PAPER.reading)
        items = concepts.select(PAPER.reading)
        extract.store_large(opened, tables, items, PAPER.reading, [STAY])
        cultures = extract.read_cultures(opened.kept, items, PAPER.reading)
        block = read_block(opened.kept, 0, 10**9, extract.kept_tables(PAPER.reading))
    assert cultures["stay"].to_list() == [STAY]
    assert block.chart["itemid"].to_list() == [938]


def test_a_stay_has_its_age_in_days_and_the_times_of_its_admission(tmp_path):
    rows = {
        "icustays": [f"7,70,{STAY},2150-01-01 00:00:00,2150-01-05 00:00:00"],
        "admissions": ["7,70,2150-01-09 00:00:00"],
        "patients": ["7,F,2100-01-01 00:00:00,"],
    }
    with source(tmp_path, **rows) as opened:
        tables = open_tables(opened, PAPER.reading)
        (stay,) = extract.read_stays(opened, tables).iter_rows(named=True)
    assert (stay["stay"], stay["patient"], stay["admission"]) == (STAY, 7, 70)
    assert (stay["age"], stay["death"]) == (18262, None)
    assert stay["icu_out"] - stay["icu_in"] == 4 * 24 * 3600
    assert stay["discharge"] - stay["icu_in"] == 8 * 24 * 3600
