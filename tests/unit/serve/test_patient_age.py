"""Ages that a table has in days are shown in years."""

from dataclasses import replace

import pytest
from served_runs import client, fitted, make_desk, ward

from etips.data.scale import Scaler
from etips.serve.patient_age import in_days, show_fact


def aged(mean, **more):
    scaler = Scaler(**more)
    scaler.mean_ = {"age": mean, "weight": mean}
    return scaler


def test_an_age_is_in_days_if_its_mean_is_that_of_adults_in_days():
    assert in_days("age", aged(64.5 * 365.25))
    assert in_days("Age", aged(0.0)) is False
    assert in_days("age", aged(64.5)) is False
    assert in_days("weight", aged(64.5 * 365.25)) is False
    assert in_days("age", None) is False


@pytest.mark.parametrize(
    ("value", "shown"), [(23_741.25, "65 years"), (None, None), ("old", "old")]
)
def test_it_is_shown_in_whole_years(value, shown):
    assert show_fact("age", value, aged(64.5 * 365.25)) == shown


def test_anything_else_is_shown_as_it_is():
    assert show_fact("age", 61.0, aged(64.5)) == 61.0
    assert show_fact("weight", 80.0, aged(23_000.0)) == 80.0


def test_the_page_of_a_stay_shows_years_and_says_that_the_slider_is_in_days():
    policy, stays = fitted(), ward(30, seed=1)
    plain = make_desk(policy, stays)
    code = plain.stays.rows[0].code
    assert "years" not in client(plain).get(f"/stays/{code}").text
    scaler = Scaler.from_json({**policy.scaler.to_json(), "mean": {
        **policy.scaler.mean_, "age": 60 * 365.25}})  # fmt: skip
    stays = replace(stays, static=stays.static * 365.25)
    page = client(make_desk(replace(policy, scaler=scaler), stays)).get(f"/stays/{code}").text
    assert " years</dd>" in page
    assert "age, in days" in page
