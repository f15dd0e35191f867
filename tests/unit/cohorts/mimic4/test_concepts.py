"""The item lists of MIMIC-IV."""

import csv
import re
from importlib.resources import files

import pytest

from etips.cohorts.mimic.items import PREADMISSION_URINE_ITEMS, TONICITY
from etips.cohorts.mimic4 import concepts
from etips.cohorts.mimic4.switches import CLEAN, PAPER
from etips.cohorts.sepsis3.events import DRUGS
from etips.cohorts.sepsis3.variables import GRID, LIMITS

ITEMS = {profile.name: concepts.select(profile.reading) for profile in (PAPER, CLEAN)}


def test_every_row_is_read_and_no_item_of_the_older_charting_system_is_left():
    rows = concepts.load()
    assert len(rows) == 411
    charted = [int(row.item) for row in rows if row.table in ("chartevents", "inputevents")]
    assert min(charted) >= 220_000


def test_profiles_differ_where_the_scripts_were_wrong():
    paper, clean = ITEMS["paper"], ITEMS["clean"]
    assert {224322, 224691} <= set(paper.vitals) - set(clean.vitals)
    assert {220050, 220051, 220180, 226732, 220739} <= set(clean.vitals) - set(paper.vitals)
    assert (227510 in paper.urine, 227510 in clean.urine) == (True, False)
    assert paper.procedure_cultures == frozenset()
    assert len(clean.procedure_cultures) == 9
    assert 229314 in clean.ventilation - paper.ventilation


def test_the_new_vasopressor_items_belong_to_both_profiles():
    new = {229617: "epinephrine"} | dict.fromkeys((229630, 229631, 229632), "phenylephrine")
    for items in ITEMS.values():
        assert new.items() <= items.vasopressors.items()
        assert set(items.vasopressors.values()) == set(DRUGS)


def test_features_are_those_of_the_rules_and_limits_agree_with_them():
    for items in ITEMS.values():
        assert {*items.vitals.values(), *items.chart_labs.values(), *items.labs.values()} <= {*GRID}
    for row in concepts.load():
        feature = row.concept.split(":")[-1]
        if row.concept.startswith(("vital:", "lab:")):
            assert LIMITS.get(feature, (None, None)) == (row.low, row.high)


def test_no_item_that_is_only_counted_is_read():
    for items in ITEMS.values():
        assert not {*concepts.SECOND_LAB_ITEMS} & {*items.labs}
        assert not {*concepts.OTHER_PRESSORS} & {*items.infused}
        assert not {*concepts.OTHER_CHARTED} & {*items.charted}


NOTES = {
    (row["concept"], row["itemid"]): row["unit_note"]
    for row in csv.DictReader(
        (files("etips.cohorts.mimic4") / "concepts.csv").read_text("utf-8").splitlines()
    )
}


def test_fluids_count_by_the_factor_that_the_list_notes():
    factors = {
        int(item): float(re.search(r"amount x ([\d.]+)", note)[1])
        for (concept, item), note in NOTES.items()
        if concept == "fluid"
    }
    assert set(factors) == ITEMS["paper"].fluids == ITEMS["clean"].fluids
    assert factors == {item: TONICITY.get(item, 1.0) for item in factors}
    before = {int(item) for concept, item in NOTES if concept == "urine_output_preadmission"}
    assert before <= {*PREADMISSION_URINE_ITEMS}


@pytest.mark.parametrize("item", concepts.NOT_VENTILATED)
def test_modes_that_are_no_ventilation_are_those_that_the_list_notes(item):
    note = NOTES["mechvent", str(item)]
    told = re.search(r"other than (.*) = ventilated", note)[1].lower().split(", ")
    assert tuple(told) == concepts.NOT_VENTILATED[item]
