"""Words of an outcome."""

import pytest

from etips.data.intake.outcome_words import fate_of, read_words


@pytest.mark.parametrize(
    ("text", "fate"),
    [
        ("Died", "harm"),
        ("1 = verstorben", "harm"),
        ("Death in hospital", "harm"),
        ("discharged dead", "harm"),
        ("non-survivor", "harm"),
        ("not recovered", "harm"),
        ("Décédé", "harm"),
        ("unfavourable", "harm"),
        ("(0) Alive", "good"),
        ("No death", "good"),
        ("Discharged home", "good"),
        ("überlebt", "good"),
        ("favourable", "good"),
        ("Lost to follow-up", None),
        ("transferred alive", None),
        ("alive with relapse", None),
        ("death, no autopsy", None),
        ("not discharged", None),
        ("B", None),
        ("positive", None),
    ],
)
def test_a_label_says_harm_or_its_contrary_or_is_left_open(text, fate):
    assert fate_of(text) == fate


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (["Alive", "Died"], [0, 1]),
        (["discharged", "expired"], [0, 1]),
        (["yes", "no"], [1, 0]),
        (["1 = ja", "0 = nein"], [1, 0]),
        (["Died", "ward"], [1, 0]),  # of two, what is no death is none
        (["Home", "SNF"], None),
        (["Alive", "ICU"], None),  # the other may be anything
        (["Died", "lost"], None),
        (["Died", "unknown"], None),
        (["A", "B"], None),
        (["yes", "dead"], None),
        ([], None),
    ],
)
def test_labels_are_read_together_or_not_at_all(labels, wanted):
    found = read_words(labels)
    assert (None if found is None else list(found.values())) == wanted


def test_of_a_reward_the_good_label_counts():
    assert read_words(["Alive", "Died"], reward=True) == {"Alive": 1.0, "Died": 0.0}
