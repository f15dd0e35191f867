"""Names of columns in the languages that hospitals write in."""

import pytest

from etips.checks import role_words
from etips.checks.role_words import likeness, names_identifier, parts_of


def test_a_name_is_cut_into_parts_without_accents():
    assert parts_of("hospStayId") == parts_of("hosp-stay_ID") == ("hosp", "stay", "id")
    assert parts_of("Décès à J28") == ("deces", "a", "j28")


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


def test_an_exact_name_is_likelier_than_a_part_and_a_part_than_an_end():
    scores = [likeness(name, role_words.LOSS) for name in ("died", "died_in_icu", "diedx", "xdied")]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("stay_id", role_words.STAY, True),
        ("icustayid", role_words.STAY, True),
        ("Fallnummer", role_words.STAY, True),
        ("encounter", role_words.STAY, True),
        ("admission_type", role_words.STAY, False),
        ("patient_age", role_words.PATIENT, False),
        ("study_id", role_words.PATIENT, True),
        ("PatientNo", role_words.PATIENT, True),
    ],
)
def test_an_identifier_is_a_whole_name_or_says_that_it_is_a_number(name, words, expected):
    assert names_identifier(name, words) == expected
