"""The balance of the prognosis in words."""

from types import SimpleNamespace

import pytest

from etips.evaluation.prognosis_balance import PrognosisBalance, PrognosisBalances
from etips.results.prognosis_words import summarize_prognosis


def balance(difference):
    return PrognosisBalance(difference, 0.01, difference / 0.01, 1.0)


def said(plain, gain, rest=None):
    balances = PrognosisBalances(
        balance(plain), balance(0.0), rest=None if rest is None else balance(rest)
    )
    return summarize_prognosis(assessed(balances, gain), hidden=False)


def assessed(balances, gain):
    return SimpleNamespace(
        diagnostics=SimpleNamespace(prognosis=balances), gain=SimpleNamespace(difference=gain)
    )


@pytest.mark.parametrize(
    ("plain", "gain", "rest", "words"),
    [
        (-0.05, -0.04, None, "0.050 better than all patients: that alone would explain the gain."),
        (-0.05, -0.09, None, "0.050 better than all patients."),
        (-0.05, 0.01, None, "0.050 better than all patients."),
        (0.05, -0.04, None, "0.050 worse than all patients."),
        (-0.05, -0.04, 0.002, "better than all patients; the predicted losses make up for all but"),
        (0.0001, -0.04, None, "had the same prognosis as all patients."),
    ],
)
def test_what_the_difference_means_is_said(plain, gain, rest, words):
    found = said(plain, gain, rest)
    assert (found.difference, found.std_error) == (plain, 0.01)
    assert words in found.sentence


def test_nobody_looked_or_it_must_not_be_worked_out():
    assert summarize_prognosis(assessed(None, -0.1), hidden=False) is None
    balances = PrognosisBalances(balance(0.1), balance(0.1))
    assert summarize_prognosis(assessed(balances, -0.1), hidden=True) is None
