"""Which column plays which part: tables of many shapes, and what was said goes first."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from etips.checks.column_facts import look_at
from etips.checks.guessing import guess_columns
from etips.data.tables.columns import TableColumns
from etips.data.tables.sources import open_source

N = 60
RNG = np.random.default_rng(0)


def guess(columns, **said):
    source = open_source(pa.table(columns))
    return guess_columns(source, look_at(source), TableColumns(**said))


def long(n_stays=20, n_steps=3):
    """A ward log: steps within stays."""
    n = n_stays * n_steps
    start = dt.datetime(2020, 1, 1)
    return {
        "subject_id": np.repeat(np.arange(n_stays) // 2 + 100, n_steps),
        "stay_id": np.repeat(np.arange(n_stays) + 7000, n_steps),
        "charttime": [start + dt.timedelta(hours=4 * (i % n_steps)) for i in range(n)],
        "age": np.repeat(RNG.integers(20, 90, n_stays), n_steps),
        "sex": np.repeat(["m", "f"], n // 2),
        "heart_rate": RNG.normal(80, 9, n),
        "prothrombin_time": RNG.normal(12, 1, n).round(),
        "treatment": RNG.choice(["none", "low", "high"], n),
        "died": np.repeat(RNG.integers(0, 2, n_stays), n_steps),
    }


def trial():
    """One row a patient, as a trial is published."""
    return {
        "age": RNG.integers(20, 90, N),
        "sex": RNG.choice(["m", "f"], N),
        "sbp": RNG.normal(120, 9, N),
        "arm": RNG.choice(["placebo", "drug"], N),
        "survived": RNG.integers(0, 2, N),
    }


def test_a_ward_log():
    made = guess(long())
    assert made.columns == TableColumns(
        stay="stay_id",
        step="charttime",
        action=("treatment",),
        loss="died",
        static=("age", "sex"),
        group="subject_id",
    )
    assert {own.field for own in made.guesses} == set(made.columns.given)
    assert all(own.reason for own in made.guesses)


def test_a_trial_without_an_identifier_is_one_row_a_patient():
    made = guess(trial())
    assert made.columns == TableColumns(action=("arm",), reward="survived")


def test_what_was_said_is_not_guessed():
    made = guess(long(), stay="stay_id", step="charttime", action=("sex",), loss="heart_rate")
    assert (made.columns.action, made.columns.loss) == (("sex",), "heart_rate")
    assert {own.field for own in made.guesses} == {"group", "static", "drop"}
    assert made.columns.drop == ("died",)


@pytest.mark.parametrize(
    "name", ["Patient_ID", "subject", "MRN", "id", "PatientNr", "hadm_id", "studyid"]
)
def test_an_identifier_that_never_repeats_is_no_feature(name):
    made = guess({name: np.arange(N), **trial()})
    assert made.columns.stay == name
    assert made.columns.step is None


def test_german_and_french_names():
    table = {
        "Fallnummer": np.repeat(np.arange(20), 3),
        "Stunde": np.tile([0, 4, 8], 20),
        "Behandlung": RNG.choice(["ja", "nein"], N),
        "verstorben": RNG.integers(0, 2, N),
        "laktat": RNG.normal(size=N),
    }
    assert guess(table).columns == TableColumns(
        stay="Fallnummer", step="Stunde", action=("Behandlung",), loss="verstorben"
    )
    renamed = dict(
        zip(["séjour", "jour", "traitement", "décès", "lactate"], table.values(), strict=True)
    )
    assert guess(renamed).columns == TableColumns(
        stay="séjour", step="jour", action=("traitement",), loss="décès"
    )


def test_a_step_without_a_name_is_what_never_repeats_in_a_stay():
    table = long()
    table["k"] = np.tile([1, 2, 3], 20)
    del table["charttime"]
    made = guess(table)
    assert made.columns.step == "k"
    assert "never repeats" in next(own.reason for own in made.guesses if own.field == "step")


def test_a_stay_without_a_name_is_the_first_column_if_a_time_orders_its_rows():
    table = long()
    table = {"case": table.pop("stay_id"), **table}
    renamed = {"bed": table.pop("case"), **table}
    del renamed["subject_id"]
    assert guess(renamed).columns.stay == "bed"


def test_doses_are_told_from_codes():
    table = long()
    del table["treatment"]
    amounts = {**table, "iv_fluid": RNG.gamma(2, 100, N), "vasopressor": RNG.gamma(2, 0.1, N)}
    assert guess(amounts).columns.dose == ("iv_fluid", "vasopressor")
    codes = {**table, "dose": RNG.integers(0, 4, N)}
    assert guess(codes).columns.action == ("dose",)


def test_treatments_of_a_factorial_trial_are_taken_together():
    table = {**trial(), "RXASP": RNG.choice(["Y", "N"], N), "RXHEP": RNG.choice(["L", "N"], N)}
    del table["arm"]
    assert guess(table).columns.action == ("RXASP", "RXHEP")


def test_the_last_column_of_zero_and_one_is_an_outcome():
    table = {**trial(), "z": RNG.integers(0, 2, N)}
    del table["survived"]
    made = guess(table)
    assert made.columns.loss == "z"
    assert next(own.reason for own in made.guesses if own.field == "loss").startswith("is the last")


def test_a_table_that_says_nothing_gives_no_guess():
    assert guess({"v1": RNG.normal(size=N), "v2": RNG.normal(size=N)}).columns == TableColumns()


def test_columns_behind_the_treatment_are_left_out_where_outcomes_stand_among_them():
    table = {
        **{name: trial()[name] for name in ("age", "sex", "sbp")},
        "arm": RNG.choice(["a", "b"], N),
        "bleeding14": RNG.integers(0, 2, N),
        "dead6": RNG.integers(0, 2, N),
        "died": RNG.integers(0, 2, N),
        "pain14": RNG.normal(size=N),
        "compliance": RNG.normal(size=N),
    }
    made = guess(table)
    assert made.columns.loss == "died"
    assert made.columns.features == ("age", "sex", "sbp")
    del table["dead6"]
    kept = guess(table)
    assert kept.columns.features is None
    assert not any(own.leave_out for own in kept.suspects)
    assert {own.column for own in kept.suspects} == {"bleeding14", "pain14", "compliance"}


def test_what_ends_like_an_identifier_but_is_none_is_a_feature():
    assert guess({"covid": np.arange(N) % 3, **trial()}).columns.stay is None


def test_free_text_behind_the_treatment_does_not_make_the_rest_an_outcome():
    table = {
        **{name: trial()[name] for name in ("age", "sex", "sbp")},
        "arm": RNG.choice(["a", "b"], N),
        "lab": RNG.normal(size=N),
        "died": RNG.integers(0, 2, N),
        "note": [f"text {n}" for n in range(N)],
    }
    made = guess(table)
    assert made.columns.drop == ("note",)
    assert "lab" in {own.column for own in made.suspects}


def test_times_that_repeat_are_put_into_steps():
    table = long()
    start = dt.datetime(2020, 1, 1)
    table["charttime"] = [start + dt.timedelta(hours=5 * (n % 3 // 2)) for n in range(N)]
    made = guess(table)
    assert (made.columns.step, made.columns.every) == ("charttime", "2h")  # five hours, three rows
    assert guess(table, every="6h").columns.every == "6h"
    assert guess(long()).columns.every is None


def test_an_omop_like_log():
    log = long()
    made = guess(
        {
            "person_id": log["subject_id"],
            "visit_occurrence_id": log["stay_id"],
            "measurement_datetime": log["charttime"],
            "value_as_number": log["heart_rate"],
            "drug_concept_id": RNG.choice([0, 1321341], len(log["died"])),
            "visit_end_datetime": log["charttime"],
            "discharge_status": np.where(log["died"], "Expired", "Home"),
        }
    )
    assert made.columns == TableColumns(
        stay="visit_occurrence_id",
        step="measurement_datetime",
        action=("drug_concept_id",),
        loss="discharge_status",
        group="person_id",
        drop=("visit_end_datetime",),
    )


def test_a_log_of_one_patient():
    made = guess(
        {
            "person_id": [77] * 6,
            "visit_occurrence_id": [5] * 6,
            "time": np.arange(6),
            "map": RNG.normal(70, 9, 6),
            "drug": ["a", "b"] * 3,
            "died": [0, 1] * 3,
        }
    )
    assert (made.columns.stay, made.columns.step) == ("visit_occurrence_id", "time")
    assert made.columns.drop == ("person_id",)


@pytest.mark.parametrize("names", [("drug___1", "drug___2"), ("drug_a", "drug_b", "drug_c")])
def test_boxes_of_one_question_are_one_action(names):
    boxes = {name: RNG.integers(0, 2, N) for name in names}
    made = guess({"age": RNG.integers(20, 90, N), **boxes, "died": RNG.integers(0, 2, N)})
    assert made.columns.action == names


def test_what_was_taken_before_is_no_treatment():
    made = guess(trial() | {"prior_medication": RNG.integers(0, 2, N)} | {"arm": ["x"] * N})
    assert made.columns.action is None


@pytest.mark.parametrize(
    ("name", "words"),
    [("status", ("Alive", "Died")), ("outcome", ("A", "B")), ("result", ("poor", "good"))],
)
def test_an_outcome_in_words_is_taken_by_its_words_or_its_name(name, words):
    table = trial()
    del table["survived"]
    made = guess(table | {name: RNG.choice(words, N)})
    assert (made.columns.loss, made.columns.reward) == (name, None)


def test_visits_order_the_rows_of_a_patient():
    visits = np.tile(["V1", "V2", "V3"], 20)
    made = guess({"id": np.repeat(np.arange(20), 3), "visit": visits, "arm": ["a", "b"] * 30})
    assert made.columns.step == "visit"


def test_codes_of_many_levels_and_names_are_left_out():
    table = {"HOSPNUM": np.arange(N) % 55, "surname": [f"S{i}" for i in range(N)], **trial()}
    assert guess(table).columns.drop == ("HOSPNUM", "surname")
