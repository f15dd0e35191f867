"""Sections 3 and 4.2: which tables of MIMIC-III are needed, and what is read from them."""

import contextlib
from dataclasses import fields

import polars as pl
import pytest

from etips.cohorts.databases import extract, open_source
from etips.cohorts.mimic.items import DEVICE_TEXTS
from etips.cohorts.mimic.mimic3 import (
    CLEAN,
    PAPER,
    Mimic3Extraction,
    needed,
)
from etips.cohorts.sepsis3.events import CONCEPT, RATE_UNITS, Events
from etips.errors import DataError


def test_clean_needs_what_its_corrections_look_at():
    paper, clean = needed(PAPER.reading), needed(CLEAN.reading)
    assert set(clean) - set(paper) == {"procedureevents_mv"}
    assert set(clean["prescriptions"]) - set(paper["prescriptions"]) == {
        "drug", "route", "drug_type",
    }  # fmt: skip
    assert set(clean["chartevents"]) - set(paper["chartevents"]) == {"error"}
    assert set(clean["labevents"]) - set(paper["labevents"]) == {"value"}


def test_mimic_iv_is_refused_by_its_name(tmp_path):
    (tmp_path / "icustays.csv").write_text("stay_id\n1\n")
    with (
        contextlib.closing(open_source(tmp_path)) as source,
        pytest.raises(DataError, match="looks like MIMIC-IV"),
    ):
        Mimic3Extraction.open_tables(source, PAPER.reading)


STAY, T = 200001, "2150-01-02 00:00:00"
EMPTY = {name: ",".join(columns) + "\n" for name, columns in needed(CLEAN.reading).items()}


@contextlib.contextmanager
def extraction(folder, profile=PAPER, **rows):
    """MIMIC-III of tables with only the given lines."""
    for name, header in EMPTY.items():
        (folder / f"{name}.csv").write_text(header + "".join(f"{r}\n" for r in rows.get(name, ())))
    with contextlib.closing(open_source(folder)) as source:
        opened = Mimic3Extraction(source, profile)
        opened.begin()
        yield opened


def charted(folder, profile, *lines):
    """The kept chart rows of (item, value, valuenum), by item."""
    rows = [f"{STAY},{T},{item},{value},{number},0" for item, value, number in lines]
    with extraction(folder, profile, chartevents=rows) as opened:
        opened.keep([STAY])
        kept = opened.kept.rows("chart")
    return {row["itemid"]: row for row in kept.iter_rows(named=True)}


STAY, T = 200001, "2150-01-02 00:00:00"


@pytest.mark.parametrize(("text", "code"), [*DEVICE_TEXTS.items(), ("Other", None)])
def test_device_texts_become_codes_and_an_empty_text_is_one(tmp_path, text, code):
    found = charted(tmp_path, PAPER, (467, f'"{text}"', ""))[467]
    assert found["device"] == code
    assert found["has_text"]


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
    with extraction(tmp_path, CLEAN, prescriptions=rows) as opened:
        found = opened.antibiotics()
    assert found["entry"].to_list() == [i for i, line in enumerate(DRUGS) if line[3]]


def test_antibiotics_by_code_keep_leading_zeros(tmp_path):
    rows = [f"{i},70,,{T},{code},x,IV,MAIN" for i, code in enumerate(["009326", "9326", "043952"])]
    with extraction(tmp_path, prescriptions=rows) as opened:
        found = opened.antibiotics()
    assert found["entry"].to_list() == [0]
    assert found["stay"].dtype == pl.Int64


def test_a_culture_counts_even_with_neither_a_text_nor_a_number(tmp_path):
    """Section 4.2: the charted value is not looked at; a vital sign without one is nothing."""
    rows = [f"{STAY},{T},938,,,0", f"{STAY},{T},211,,,0"]
    with extraction(tmp_path, chartevents=rows) as opened:
        opened.keep([STAY])
        assert opened.cultures()["stay"].to_list() == [STAY]
        assert opened.kept.rows("chart")["itemid"].to_list() == [938]


@pytest.fixture(params=["hospital", "hospital4"])
def simulated(request):
    """Either database under clean; every stay is kept."""
    with contextlib.closing(open_source(request.getfixturevalue(request.param))) as source:
        opened = extract(source, "clean")
        opened.begin()
        opened.keep(opened.stays()["stay"].to_list())
        yield opened


def test_frames_have_what_the_rules_ask_for_in_neutral_words(simulated):
    stays = simulated.stays()
    asked = {
        "stay", "patient", "admission", "gender", "age", "icu_in", "icu_out", "discharge", "death",
    }  # fmt: skip
    assert asked <= set(stays.columns)
    assert set(simulated.antibiotics().columns) == {"entry", "admission", "stay", "t"}
    assert set(simulated.samples().columns) == {"patient", "admission", "t"}
    assert set(simulated.cultures().columns) == {"stay", "t"}
    first, last = stays["stay"][0], stays["stay"][9]
    events = simulated.events(first, last)
    for part in fields(Events):
        frame = getattr(events, part.name)
        assert frame["stay"].is_between(first, last).all()
        assert "itemid" not in frame.columns
    for frame in (events.measurements, events.vasopressors, events.urine, events.infusions):
        assert frame.height > 0
    assert events.measurements["concept"].dtype == CONCEPT
    assert events.vasopressors["unit"].drop_nulls().is_in(RATE_UNITS).all()
    assert events.fluid_before["stay"].is_unique().all()
    tables = {item.table for item in simulated.audit()}
    assert tables >= {"chartevents", "labevents", "outputevents"}
    assert any(table.startswith("inputevents") for table in tables)


def test_a_kind_without_a_row_is_refused_by_the_name_of_its_table(simulated):
    with pytest.raises(DataError, match=r"^microbiologyevents: "):
        simulated.require_rows("samples")
    simulated.samples()
    simulated.require_rows("samples", "charted", "laboratory", "urine")
    simulated.kept.put("urine", pl.DataFrame({"stay": []}).to_arrow(), append=False)
    with pytest.raises(DataError, match=r"^outputevents: must hold rows that can be used"):
        simulated.require_rows("urine")
