"""Section 4.1: lists of items, and which rows of them a profile takes."""

import csv
import re
from dataclasses import fields

import pytest

from etips.cohorts.mimic import mimic3, mimic4
from etips.cohorts.mimic.extraction import ANTIBIOTIC_NAMES, FALSE_NAMES, LOCAL_ROUTES
from etips.cohorts.mimic.items import (
    PREADMISSION_URINE_ITEMS,
    TONICITY,
    MimicReading,
    all_on,
    read_list,
    select_items,
)
from etips.cohorts.sepsis3.events import DRUGS
from etips.cohorts.sepsis3.rules import AntibioticOrder, Rules
from etips.cohorts.sepsis3.variables import GRID, LIMITS

HEADER = "concept,source_table,itemid,label,unit_note,plausible_low,plausible_high,dbsource,profile"
LIST = f"""{HEADER}
vital:HR,chartevents,1,,,,250,,both
vital:HR,chartevents,2,,,,250,,paper
vital:HR,chartevents,3,,,0,,,clean
lab:Sodium,labevents,4,,,,,,both
culture,procedureevents_mv,5,,,,,,clean
antibiotic_gsn,prescriptions,000006,,,,,,both
antibiotic_name,prescriptions,cef,,,,,,clean
"""


def test_a_profile_takes_its_own_rows_and_those_of_both():
    rows = [*csv.DictReader(LIST.splitlines())]
    paper, clean = (select_items(rows, own) for own in (MimicReading(), all_on(MimicReading())))
    assert (set(paper.vitals), set(clean.vitals)) == ({1, 2}, {1, 3})
    assert (paper.procedure_cultures, clean.procedure_cultures) == (frozenset(), {5})
    assert clean.antibiotics == {"000006"}
    assert clean.labs == {4: "Sodium"}


def listed(concept):
    return [row["itemid"] for row in read_list("mimic4") if row["concept"] == concept]


def test_names_and_routes_of_antibiotics_are_those_of_the_list_of_mimic_iv():
    assert ANTIBIOTIC_NAMES.split("|") == listed("antibiotic_name")
    assert FALSE_NAMES.split("|") == listed("antibiotic_name_not")
    assert [*LOCAL_ROUTES, "eye", "ear"] == listed("antibiotic_route_not")


ITEMS = {
    (module.__name__[-1], profile.name): select_items(
        read_list(f"mimic{module.__name__[-1]}"), profile.reading
    )
    for module in (mimic3, mimic4)
    for profile in (module.PAPER, module.CLEAN)
}


def test_every_item_is_a_concept_or_a_drug_that_the_rules_know():
    for own in ITEMS.values():
        assert {*own.vitals.values(), *own.chart_labs.values(), *own.labs.values()} <= {*GRID}
        assert set(own.vasopressors.values()) == set(DRUGS)


@pytest.mark.parametrize("database", ["mimic3", "mimic4"])
def test_the_plausible_ranges_of_a_list_are_those_of_the_rules(database):
    for row in read_list(database):
        if row["concept"].startswith(("vital:", "lab:")):
            limits = LIMITS.get(row["concept"].split(":")[-1], (None, None))
            ends = (row["plausible_low"], row["plausible_high"])
            assert tuple(float(end) if end else None for end in ends) in (limits, (None, None))


def test_there_are_729_concepts_of_mimic_iii_and_every_feature_has_items():
    paper, clean = ITEMS["3", "paper"], ITEMS["3", "clean"]
    assert len(read_list("mimic3")) == 729
    assert {"GCS_eye", "GCS_verbal", "GCS_motor"} <= set(clean.vitals.values())
    assert len(set(paper.vitals.values())) == 28
    assert len(set({**paper.chart_labs, **paper.labs}.values())) == 35
    assert not paper.procedure_cultures
    assert (paper.chart_labs[4194], clean.chart_labs[4194]) == ("Sodium", "Potassium")


def test_no_item_that_is_only_counted_is_read():
    assert (
        min(
            int(row["itemid"])
            for row in read_list("mimic4")
            if row["source_table"] == "chartevents"
        )
        >= 220_000
    )
    for name in ("paper", "clean"):
        own = ITEMS["4", name]
        assert not {*mimic4.SECOND_LAB_ITEMS} & {*own.labs}
        assert not {*mimic4.OTHER_PRESSORS} & own.infused
        assert not {*mimic4.OTHER_CHARTED} & own.charted


NOTES = {(row["concept"], row["itemid"]): row["unit_note"] for row in read_list("mimic4")}


def test_fluids_count_by_the_factor_that_the_list_notes():
    factors = {
        int(item): float(re.search(r"amount x ([\d.]+)", note)[1])
        for (concept, item), note in NOTES.items()
        if concept == "fluid"
    }
    assert set(factors) == ITEMS["4", "paper"].fluids == ITEMS["4", "clean"].fluids
    assert factors == {item: TONICITY.get(item, 1.0) for item in factors}
    before = {int(item) for concept, item in NOTES if concept == "urine_output_preadmission"}
    assert before <= {*PREADMISSION_URINE_ITEMS}


@pytest.mark.parametrize("item", mimic4.NOT_VENTILATED)
def test_modes_that_are_no_ventilation_are_those_that_the_list_notes(item):
    note = NOTES["mechvent", str(item)]
    told = re.search(r"other than (.*) = ventilated", note)[1].lower().split(", ")
    assert tuple(told) == mimic4.NOT_VENTILATED[item]


def test_profiles_turn_on_every_switch_in_clean_and_none_in_paper():
    for module, exceptions in ((mimic3, set()), (mimic4, {"laboratory_by_subject"})):
        on = {name for name in module.SWITCHES if getattr(module.PAPER.reading, name)}
        assert on == exceptions
        assert all(getattr(module.CLEAN.reading, name) for name in module.SWITCHES)
        assert not {f.name for f in fields(module.Reading)} & {f.name for f in fields(Rules)}
    assert (list(mimic3.PROFILES), list(mimic4.PROFILES)) == (
        ["paper", "clean"],
        ["clean", "paper"],
    )
    assert mimic4.CLEAN.reading.onset is mimic4.PAPER.reading.onset is mimic4.Onset.RULES
    orders = {profile.rules.antibiotic_order for profile in mimic4.PROFILES.values()}
    assert orders == {AntibioticOrder.DATE}
