"""The audit of units: what is expected, what is silent, what is not expected."""

import contextlib

import pytest

from etips.cohorts.databases import open_source
from etips.cohorts.mimic.mimic3 import CLEAN, PAPER, Mimic3Extraction

STAY, T = 200001, "2150-01-02 00:00:00"
ICU = [f"1,70,{STAY},2150-01-01 00:00:00,2150-01-05 00:00:00"]


def units(folder, *, profile=PAPER, columns=lambda reading: Mimic3Extraction.layout.tables, **rows):
    """The audit of tables with only the given lines, by item."""
    for name, kinds in columns(CLEAN.reading).items():
        lines = [",".join(kinds), *({"icustays": ICU, **rows}).get(name, ()), ""]
        (folder / f"{name}.csv").write_text("\n".join(lines))
    with contextlib.closing(open_source(folder)) as opened:
        extraction = Mimic3Extraction(opened, profile)
        extraction.begin()
        extraction.keep([STAY])
        return {item.item: item for item in extraction.audit()}


def charted(item, number, unit):
    return f"{STAY},{T},{item},{number},{number},0,{unit}"


@pytest.mark.parametrize("unit", ["Deg. C", "?C", "\N{DEGREE SIGN}C", "deg C"])
def test_spellings_of_a_unit_are_the_same(tmp_path, unit):
    found = units(tmp_path, chartevents=[charted(223762, 37, unit)])[223762]
    assert (found.n_rows, found.n_silent, found.n_unexpected) == (1, 0, 0)


def test_rows_in_another_unit_and_without_one_are_counted_apart(tmp_path):
    rows = [charted(811, 140, u) for u in ("mg/dL", "mmol/L", "mmol/L", "umol/L", "", "...")]
    found = units(tmp_path, chartevents=rows)[811]
    assert (found.table, found.feature, found.n_rows) == ("chartevents", "Glucose", 6)
    assert (found.n_silent, found.n_unexpected) == (2, 3)
    assert list(found.unexpected.items()) == [("mmol/L", 2), ("umol/L", 1)]


def test_a_row_without_a_number_and_a_feature_without_a_unit_are_not_audited(tmp_path):
    rows = [f"{STAY},{T},811,high,,0,mg/dL", f"{STAY},{T},467,None,,0,"]
    assert units(tmp_path, chartevents=rows) == {}


def test_laboratory_results_urine_and_both_kinds_of_input_are_audited(tmp_path):
    found = units(
        tmp_path,
        labevents=[f"70,{T},50971,4.0,4,mEq/L", f"70,{T},50971,4.0,4,mg/dL"],
        outputevents=[f"{STAY},{T},226559,80,L"],
        inputevents_mv=[f"{STAY},{T},{T},225158,100,50,mL/hour,FinishedRunning,grams"],
        inputevents_cv=[f"{STAY},{T},30018,100,,,ml"],
    )
    odd = {number: item.n_unexpected for number, item in found.items()}
    assert odd == {50971: 1, 226559: 1, 225158: 1, 30018: 0}


def test_of_a_vasopressor_the_unit_of_the_rate_counts_spelt_exactly(tmp_path):
    line = "{stay},{t},{t},{item},1,{rate},{unit},FinishedRunning,mg".format
    rows = [
        line(stay=STAY, t=T, item=221906, rate=0.1, unit="mcg/kg/min"),
        line(stay=STAY, t=T, item=221906, rate=0.1, unit="MCG/KG/MIN"),
        line(stay=STAY, t=T, item=221906, rate="", unit=""),
        line(stay=STAY, t=T, item=222315, rate=2.4, unit="mcg/kg/min"),
    ]
    found = units(tmp_path, inputevents_mv=rows)
    assert (found[221906].n_rows, found[221906].n_unexpected) == (2, 1)
    assert found[222315].n_unexpected == 1
