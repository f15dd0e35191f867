"""Which column plays which part, guessed with a reason."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from etips.checks import role_words
from etips.checks.column_facts import ColumnFacts, look_at
from etips.checks.guessing import ask, guess_columns, stacked
from etips.checks.role_words import likeness
from etips.checks.suspects import find_suspects
from etips.data.tables.sources import open_source
from etips.data.tables.table_spec import TableSpec

N = 60
RNG = np.random.default_rng(0)


def guess(columns, **said):
    source = open_source(pa.table(columns))
    return guess_columns(source, look_at(source), TableSpec(**said))


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
    assert made.columns == TableSpec(
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
    assert made.columns == TableSpec(action=("arm",), reward="survived")


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
    assert guess(table).columns == TableSpec(
        stay="Fallnummer", step="Stunde", action=("Behandlung",), loss="verstorben"
    )
    renamed = dict(
        zip(["séjour", "jour", "traitement", "décès", "lactate"], table.values(), strict=True)
    )
    assert guess(renamed).columns == TableSpec(
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
    assert guess({"v1": RNG.normal(size=N), "v2": RNG.normal(size=N)}).columns == TableSpec()


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
    assert not kept.columns.features
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
    assert made.columns == TableSpec(
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
    assert not made.columns.action


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


def suspect(name, shape="number", **more):
    own = ColumnFacts(name, 0, shape, 1000, **{"n_distinct": 500, **more})
    found = find_suspects([own], [own], TableSpec(), one_row=False)
    return found[0] if found else None


@pytest.mark.parametrize(
    "name", ["death_90d", "DEAD1", "hospital_expire_flag", "alive_at_28", "los", "discharge_date"]
)
def test_what_is_only_known_later_is_left_out(name):
    assert suspect(name, n_distinct=2).leave_out


@pytest.mark.parametrize("name", ["age", "weight_loss", "heart_failure", "readmission", "sofa"])
def test_what_is_known_before_is_no_suspect(name):
    assert suspect(name, n_distinct=2) is None


def test_identifiers_and_free_text_are_left_out():
    assert suspect("note", "text", n_distinct=900).leave_out
    assert suspect("patient_id", whole=True, n_distinct=400).leave_out
    assert suspect("index", whole=True, n_distinct=1000).leave_out
    assert suspect("lactate", n_distinct=1000) is None


def test_many_levels_and_codes_are_asked_about():
    assert "--categorical" in suspect("diagnosis", "text", n_distinct=80).reason
    codes = suspect("ward", whole=True, n_distinct=12)
    assert "--categorical" in codes.reason
    assert not codes.leave_out
    assert suspect("ward", "text", n_distinct=12) is None


def test_what_somebody_called_a_category_is_one():
    own = ColumnFacts("diagnosis", 0, "text", 1000, n_distinct=80)
    said = TableSpec(categorical=("diagnosis",))
    assert find_suspects([own], [own], said, one_row=True) == ()


def test_a_column_with_a_part_is_no_suspect_but_a_static_one_may_be():
    own = ColumnFacts("died", 0, "number", 100, n_distinct=2)
    assert find_suspects([own], [], TableSpec(loss="died"), one_row=True) == ()
    static = TableSpec(static=("died",))
    assert [s.column for s in find_suspects([own], [], static, one_row=True)] == ["died"]


def text(name, *levels, n=200):
    return ColumnFacts(name, 0, "text", n, n_distinct=len(levels), levels=levels)


def number(name, n_distinct, low=0.0, high=9.0):
    return ColumnFacts(name, 0, "number", 200, 0, n_distinct, whole=True, low=low, high=high)


def test_a_guessed_outcome_of_either_meaning_is_asked_about():
    facts = [number("outcome", 2, high=1.0)]
    said = TableSpec(loss="outcome")
    assert ask(facts, said, guessed=["loss"], one_row=True) == (
        "outcome: is 1 the harm? If it is what is hoped for: --reward outcome",
    )
    assert ask(facts, said, guessed=[], one_row=True) == ()
    assert ask([number("died", 2, high=1.0)], said, guessed=["loss"], one_row=True) == ()


def test_words_that_are_not_clear_are_asked_about_unless_few_rows_have_them():
    said = TableSpec(loss="end")
    told = ask([text("end", "A", "B")], said, guessed=[], one_row=False)
    assert told == ("end: which of A, B are the harm? Name them in --bad",)
    assert ask([text("end", "A", "B", n=20)], said, guessed=[], one_row=False) == ()
    named = TableSpec(loss="end", bad=("B",))
    assert ask([text("end", "A", "B")], named, guessed=[], one_row=False) == ()


def test_measurements_side_by_side_are_asked_about():
    facts = [number(f"sofa_{k}", 9) for k in range(1, 5)]
    asked = ask(facts, TableSpec(), guessed=[], one_row=True)
    assert len(asked) == 1
    assert asked[0].startswith("sofa_1 to sofa_4 look like one thing measured 4 times: were all")
    assert ask(facts, TableSpec(), guessed=[], one_row=False) == ()
    assert ask(facts[:2], TableSpec(), guessed=[], one_row=True) == ()


def test_a_row_a_measurement_is_told_with_the_line_that_mends_it():
    facts = [text("variable", "map", "hr"), number("value", 40)]
    (told,) = stacked(facts)
    assert "columns='variable', values='value'" in told
    assert stacked([text("variable", "map"), number("age", 40)]) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Death", role_words.LOSS),
        ("hospital_expire_flag", role_words.LOSS),
        ("décès", role_words.LOSS),
        ("Verstorben", role_words.LOSS),
        ("28d_mortality", role_words.LOSS),
        ("fallecido", role_words.LOSS),
        ("überlebt", role_words.REWARD),
        ("Survived", role_words.REWARD),
        ("charttime", role_words.STEP),
        ("Zeitpunkt", role_words.STEP),
        ("study day", role_words.STEP),
        ("treatment_arm", role_words.ACTION),
        ("Behandlung", role_words.ACTION),
        ("traitement", role_words.ACTION),
        ("propensity_score", role_words.PROPENSITY),
        ("length_of_stay", role_words.LATER),
    ],
)
def test_usual_names_are_known(name, words):
    assert likeness(name, words) >= role_words.SURE


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("weight_loss", role_words.LOSS),
        ("heart_failure", role_words.LOSS),
        ("heart_rate", role_words.DOSE),
        ("stage", role_words.STEP),
        ("charge", role_words.ACTION),
    ],
)
def test_words_that_are_part_of_other_names_do_not_count(name, words):
    assert likeness(name, words) < role_words.SURE
