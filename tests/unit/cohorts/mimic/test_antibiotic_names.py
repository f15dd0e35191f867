"""The names of antibiotics are those of the list that ships with MIMIC-IV."""

from etips.cohorts.mimic.antibiotic_names import FALSE_NAMES, LOCAL_ROUTES, NAMES
from etips.cohorts.mimic4 import concepts


def listed(concept):
    return [row.item for row in concepts.load() if row.concept == concept]


def test_names_and_routes_are_those_of_the_list():
    assert NAMES.split("|") == listed("antibiotic_name")
    assert FALSE_NAMES.split("|") == listed("antibiotic_name_not")
    assert [*LOCAL_ROUTES, "eye", "ear"] == listed("antibiotic_route_not")
