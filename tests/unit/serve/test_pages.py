"""Pages by way of the gate, as a browser asks for them, and what they are made of."""

import re
from dataclasses import replace

import numpy as np
import pytest
from served_runs import client, desk, fitted, make_desk, ward
from small_worlds import small, training

import etips
from etips.data.scale import Scaler
from etips.learn import DirectMethod
from etips.serve.decision import Track
from etips.serve.drawings import action_chart, signed_bars, value_chart
from etips.serve.pages import Pages, assets, meter, templates, without_styles
from etips.serve.values import (
    RANGES,
    Control,
    Range,
    in_days,
    ranges_of,
    reach_of,
    show_fact,
    show_number,
)


def code(own=None):
    return (own or desk()).stays.rows[0].code


@pytest.fixture(scope="module")
def asking():
    return client()


def test_pages_are_there_and_hold_nobodys_name(asking):
    for path in ("/", "/stays", f"/stays/{code()}", f"/stays/{code()}/why?at=1"):
        answer = asking.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["content-type"].startswith("text/html")
        assert "CANARY" not in answer.text
        assert not re.search(r'\sstyle="', answer.text)


def test_stays_are_sorted_and_filtered(asking):
    def listed(**query):
        return re.findall(r'href="/stays/([0-9A-F]+)"', asking.get("/stays", params=query).text)

    rows = desk().stays.select("abstention", "agrees")
    assert listed(sort="abstention", show="agrees") == [row.code for row in rows][:40]
    assert listed(code=code()[:6].lower()) == [code()]
    assert len(listed(sort="nonsense", show="x", page="-1")) == 30


def test_a_part_of_a_page_is_sent_where_a_part_is_asked_for(asking):
    whole = asking.get(f"/stays/{code()}?at=1").text
    part = asking.get(f"/stays/{code()}?at=1", headers={"HX-Request": "true"}).text
    assert "<html" in whole
    assert "<html" not in part
    assert part.strip() in whole


def test_what_if_changes_the_advice(asking):
    def advice(body):
        answer = asking.post(f"/stays/{code()}/what-if?at=0", content=body)
        assert answer.status_code == 200
        return re.search(r"<h2>(.*?)</h2>", answer.text)[1]

    assert "vasopressor 2" in advice("s0=40")
    assert "vasopressor 0" in advice("s0=110")
    assert advice("s0=110") == advice("s0=110&s99=3&x=1&s2=dusk")


def test_an_answer_part_by_part(asking):
    told = asking.get(f"/stays/{code()}/answer?at=0&part-0=1&part-1=wait").text
    assert "You wait with vasopressor" in told
    assert "Clinicians choose fluid" in told


@pytest.mark.parametrize("path", ["", "/why", "/answer"])
def test_a_stay_that_is_not_listed_is_not_there(asking, path):
    for own in ("FFFFFFFF", "CANARY-1-1", "%00", "a%2fb"):
        assert asking.get(f"/stays/{own}{path}").status_code == 404
    assert asking.post("/stays/FFFFFFFF/what-if").status_code == 404


def test_without_data_the_list_says_how_to_get_some():
    bare = client(desk(with_stays=False))
    assert "--data" in bare.get("/stays").text
    assert "--data" in bare.get("/").text
    assert bare.get("/stays/FFFFFFFF").status_code == 404


def test_too_many_fields_are_refused(asking):
    body = "&".join(f"x{k}=1" for k in range(5000))
    assert asking.post(f"/stays/{code()}/what-if", content=body).status_code == 422


def test_features_are_charted_that_somebody_chose():
    pages = Pages(desk())
    assert pages.charted("1-0-2-77-x") == (1, 0)  # 2 is a category
    assert pages.charted("") == (0, 1)
    assert set(pages.reach) == {"s0", "s1", "s2", "t0"}


def test_hostile_names_of_columns_actions_and_levels_leave_pages_intact_p5():
    data = ward(40)
    script, image = "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>'
    names = (script, "Lactate", f"shift={image}", "shift=day", "Lactate_missing")
    actions = tuple(f"{image}{k}" for k in range(6))
    schema = replace(
        data.schema,
        sequence=names,
        static=(image,),
        actions=actions,
        categories={"shift": (image, "day")},
    )
    data = replace(data, schema=schema)
    policy = DirectMethod(**small(training=training(1))).fit(data).policy_
    own = client(make_desk(policy, data))
    stay = make_desk(policy, data).stays.rows[0].code
    for path in ("/", "/stays", f"/stays/{stay}", f"/stays/{stay}/why", f"/stays/{stay}/answer"):
        page = own.get(path).text
        assert "<script>alert" not in page
        assert "<img" not in page
    changed = own.post(f"/stays/{stay}/what-if", content="s0=3").text
    assert "<img" not in changed
    assert "&lt;img" in changed


def test_the_finding_and_the_verdict_are_those_of_the_report_h2():
    assert "not evaluated" in Pages(desk()).overview
    results = etips.evaluate({"run": fitted()}, ward(60, seed=5))
    pages = Pages(replace(desk(), results=results))
    assert results.headline.verdict in pages.overview
    assert "The policies" in pages.overview
    assert "Where the policy differs" in pages.overview
    assert ' style="' not in pages.overview
    assert pages.verdict == results.headline.verdict


def test_nothing_that_pages_load_comes_from_elsewhere_p5():
    for name, asset in assets().items():
        text = asset[0].decode()
        if name != "htmx.min.js":
            assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
            assert "https://" not in text
    for name in templates().list_templates(filter_func=lambda own: own.endswith(".html")):
        source = templates().loader.get_source(templates(), name)[0]
        assert "http" not in source.replace("http-equiv", ""), name
        assert " onclick" not in source


def test_styles_of_drawings_move_to_where_they_are_allowed():
    assert without_styles('<svg style="height:3px">') == '<svg data-style="height:3px">'
    assert 'data-style="width:100%"' in meter(7.0, "c0")
    assert 'data-style="width:0%"' in meter(None, "c0")


def test_a_slider_reaches_three_deviations_and_the_value_that_is_there():
    scaler = Scaler(log=("dose",))
    scaler.mean_ = {"x": 10.0, "dose": 0.0, "flag": 0.5}
    scaler.scale_ = {"x": 5.0, "dose": 1.0, "flag": 1.0}
    scaler.left_ = frozenset({"flag"})
    assert reach_of("x", 1.0, scaler) == (0.0, 25.0)  # never below zero in the data
    assert reach_of("dose", 0.0, scaler) == (0, pytest.approx(np.exp(3) - 0.1))
    assert reach_of("flag", 0.0, scaler) == (0.0, 1.0)
    control = Control.of("s0", desk().advisor.form.sequence[0], 70.0, (0.0, 25.0), scaler)
    assert control.high >= 70
    assert control.low == 0


def test_numbers_are_shown_with_four_digits_and_never_as_powers():
    shown = [show_number(own) for own in (0.000123456, 123456.7, 0.1, -2.0, None, float("nan"))]
    assert shown == ["0.0001235", "123500", "0.1", "-2", "", ""]


def test_only_what_was_changed_is_read_and_nonsense_is_not():
    pressure, _, shift = desk().advisor.form.sequence
    control = Control.of("s0", pressure, 61.23456, (0.0, 100.0), None)
    for given, value in (("61.23", None), ("70", 70.0), ("x", None), ("nan", None), ("1e99", 1e30)):
        assert control.read(given, pressure.least) == value
    control = Control.of("s2", shift, "day", (0.0, 1.0), None)
    for given, value in (("day", None), ("night", "night"), ("dusk", None)):
        assert control.read(given, shift.least) == value


def scaled(**means):
    scaler = Scaler(log=("Creatinine",))
    scaler.mean_ = dict(means)
    scaler.scale_ = dict.fromkeys(means, 1.0)
    return scaler


def test_a_column_of_the_cohort_in_its_own_unit_has_a_range():
    own = scaled(MeanBP=75.0, HR=92.0, Creatinine=float(np.log(1.6)), Arterial_BE=-3.0, strange=3.0)
    found = ranges_of(["MeanBP", "HR", "Creatinine", "Arterial_BE", "strange"], own)
    assert set(found) == {"MeanBP", "HR", "Creatinine", "Arterial_BE"}
    assert found["MeanBP"] == RANGES["MeanBP"]


def test_the_same_names_scaled_or_in_another_unit_have_none():
    own = scaled(MeanBP=0.0, HR=0.1, Arterial_BE=0.0, Glucose=-0.1)
    assert ranges_of(list(own.mean_), own) == {}
    own = scaled(MeanBP=75.0, HR=92.0, Sodium=140.0, Creatinine=float(np.log(140.0)))  # micromol/L
    assert "Creatinine" not in ranges_of(list(own.mean_), own)
    assert ranges_of(["MeanBP"], None) == {}


@pytest.mark.parametrize(
    ("name", "mean", "value", "shown"),
    [
        ("age", 23_600.0, 23_741.25, "65 years"),
        ("Age", 23_600.0, None, None),
        ("age", 23_600.0, "old", "old"),
        ("age", 64.5, 61.0, 61.0),
        ("weight", 23_000.0, 80.0, 80.0),
    ],
)
def test_an_age_is_in_days_if_its_mean_is_that_of_adults_and_is_shown_in_years(
    name, mean, value, shown
):
    assert show_fact(name, value, scaled(**{name: mean})) == shown
    assert not in_days("age", None)


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


def test_values_before_the_decision_are_drawn_apart_from_those_after():
    values = np.array([1.0, 2.0, np.nan, 4.0, 5.0])
    drawn = value_chart("x", values, [True, False, False, True, True], 3, Range(1, 3, ""))
    assert drawn.count("<circle") == 4
    assert drawn.count("later") == 2  # the last point and the line to it
    assert drawn.count("hollow") == 1
    assert 'class="normal"' in drawn
    assert 'class="normal"' not in value_chart("x", values, [True] * 5, 0, None)
    assert "<svg" in value_chart("x", np.full(3, np.nan), [False] * 3, 0, None)
    assert value_chart("x", np.ones(1), [True], 0, None).count("<circle") == 1


def test_what_was_given_and_advised_stand_at_their_levels():
    track = Track("x", ("none", "low", "high"), (0, 2, None), (1, 2, None))
    drawn = action_chart(track, [0, 1, 2], 1)
    assert (drawn.count("<circle"), drawn.count("hollow c1"), drawn.count(">wait<")) == (2, 2, 1)
    track = Track("x", [f"level {k}" for k in range(40)], (3, 3), (7, 3))
    drawn = action_chart(track, [0, 1], 0)  # of a long scale only levels that occur
    assert "level 7" in drawn
    assert "level 8" not in drawn


def test_bars_lie_to_either_side_and_names_are_escaped():
    drawn = signed_bars([("<b>", 2.0), ("y", -1.0)])
    assert "&lt;b&gt;" in drawn
    assert ("mark c0" in drawn, "mark c1" in drawn) == (True, True)
    assert "<svg" in signed_bars([("x", 0.0)])
