"""Which database a source holds, and a second one beside it."""

import contextlib
from dataclasses import replace

import pytest

from etips.cohorts import databases
from etips.cohorts.databases import DATABASES, compare, extract, open_source, recognise
from etips.cohorts.dataset.agreement import Evidence, Outcome
from etips.cohorts.mimic.mimic3 import CLEAN
from etips.errors import DataError, SettingError

MIMIC3 = DATABASES["mimic3"]


@pytest.fixture
def source(hospital):
    with contextlib.closing(open_source(hospital)) as opened:
        yield opened


def test_a_source_is_recognised_and_opened_under_the_first_profile_or_the_one_asked_for(source):
    assert recognise(source) is MIMIC3
    assert extract(source).profile == "paper"
    assert extract(source, "clean").profile == "clean"


def test_an_unknown_profile_is_refused(source):
    with pytest.raises(SettingError, match="must be one of paper, clean"):
        extract(source, "draft")


def test_a_source_with_tables_of_two_databases_is_refused(tmp_path):
    (tmp_path / "icustays.csv").write_text("stay_id\n1\n")
    (tmp_path / "inputevents_mv.csv").write_text("icustay_id\n1\n")
    with (
        contextlib.closing(open_source(tmp_path)) as mixed,
        pytest.raises(DataError, match="it looks like MIMIC-III and MIMIC-IV"),
    ):
        recognise(mixed)


def test_a_definition_of_another_database_is_refused_by_its_name(source):
    with pytest.raises(SettingError, match=r"onset: mimic-code is no .* It is one for MIMIC-IV"):
        extract(source, "paper", {"onset": "mimic-code"})
    with pytest.raises(SettingError, match=r"Leave it out\.$"):
        extract(source, "paper", {"onset": "guess"})


def test_a_second_database_is_a_line_of_the_list(source, monkeypatch):
    class Other(MIMIC3):
        name, label, profiles = "mimic3", "Other", {"clean": CLEAN}
        recognises = staticmethod(lambda tables: "icustays" in tables)

    class First(MIMIC3):
        recognises = staticmethod(lambda tables: False)

    monkeypatch.setattr(databases, "DATABASES", {"mimic3": First, "other": Other})
    assert recognise(source) is Other
    assert extract(source).profile == "clean"
    monkeypatch.setattr(databases, "DATABASES", {"mimic3": MIMIC3, "other": Other})
    with pytest.raises(DataError, match="it looks like MIMIC-III and Other"):
        recognise(source)


def test_a_source_that_nobody_recognises_is_the_first_s_to_refuse(source, monkeypatch):
    class Deaf(MIMIC3):
        recognises = staticmethod(lambda tables: False)

    monkeypatch.setattr(databases, "DATABASES", {"mimic3": Deaf})
    assert recognise(source) is Deaf


def test_a_cohort_is_compared_with_what_is_published_of_its_database(paper_cohort):
    evidence = Evidence.of(paper_cohort)
    assert len(compare(evidence)) > 70
    checks = compare(replace(evidence, database="other"))
    judged = {check.quantity for check in checks if check.outcome is not Outcome.NOT_PUBLISHED}
    assert judged == {"features", "actions"}
    told = {check.quantity: check for check in checks}["rows of the final table"]
    assert (told.found, told.target) == (paper_cohort.table.height, None)
