"""The seam between a database and the rules."""

import inspect

import polars as pl

from etips.cohorts.mimic3.extraction import Mimic3Extraction
from etips.cohorts.sepsis3.events import CONCEPT, RATE_UNITS, Extraction
from etips.cohorts.sepsis3.variables import GRID


def test_concepts_sort_in_the_order_of_the_grid():
    names = pl.Series(GRID[::-1], dtype=CONCEPT)
    assert names.sort().to_list() == list(GRID)
    assert names.to_physical().to_list() == list(range(len(GRID)))[::-1]


def test_units_of_rates_are_told_once():
    assert len(set(RATE_UNITS)) == 4


def test_an_extraction_has_every_method_with_the_same_arguments():
    methods = [
        name
        for name, part in vars(Extraction).items()
        if inspect.isfunction(part) and name[0] != "_"
    ]
    assert {"stays", "antibiotics", "samples", "cultures", "events", "audit"} <= set(methods)
    for name in methods:
        ours, theirs = (getattr(kind, name) for kind in (Extraction, Mimic3Extraction))
        assert list(inspect.signature(ours).parameters) == list(
            inspect.signature(theirs).parameters
        )
