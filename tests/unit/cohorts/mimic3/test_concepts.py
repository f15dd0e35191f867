"""Section 4.1: the shipped list of items."""

import csv
from importlib.resources import files

from etips.cohorts.mimic3 import concepts
from etips.cohorts.mimic3.switches import CLEAN, PAPER
from etips.cohorts.sepsis3.events import DRUGS
from etips.cohorts.sepsis3.variables import GRID, LIMITS


def test_there_are_729_concepts_and_every_feature_has_items():
    assert len(concepts.load()) == 729
    paper, clean = concepts.select(PAPER.reading), concepts.select(CLEAN.reading)
    assert {"GCS_eye", "GCS_verbal", "GCS_motor"} <= set(clean.vitals.values())
    assert len(set(paper.vitals.values())) == 28
    assert len(set({**paper.chart_labs, **paper.labs}.values())) == 35
    assert not paper.procedure_cultures
    assert paper.chart_labs[4194] == "Sodium"
    assert clean.chart_labs[4194] == "Potassium"


def test_the_plausible_ranges_of_the_list_are_those_of_the_rules():
    text = (files("etips.cohorts.mimic3") / "concepts.csv").read_text("utf-8")
    listed = {}
    for row in csv.DictReader(text.splitlines()):
        kind, _, feature = row["concept"].partition(":")
        bounds = row["plausible_low"], row["plausible_high"]
        if kind in ("vital", "lab") and any(bounds):
            listed.setdefault(feature, set()).add(tuple(float(b) if b else None for b in bounds))
    assert listed == {name: {bounds} for name, bounds in LIMITS.items()}


def test_every_item_is_a_concept_or_a_drug_that_the_rules_know():
    for profile in (PAPER, CLEAN):
        items = concepts.select(profile.reading)
        assert {*items.vitals.values(), *items.chart_labs.values(), *items.labs.values()} <= {*GRID}
        assert set(items.vasopressors.values()) == set(DRUGS)
