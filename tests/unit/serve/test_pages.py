"""Pages by way of the gate, as a browser asks for them."""

import re
from dataclasses import replace

import pytest
from served_runs import client, desk, make_desk, ward
from small_worlds import small, training

from etips.learn import DirectMethod
from etips.serve.pages import Pages


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
    assert pages.charted({"f": "1-0-2-77-x"}) == (1, 0)  # 2 is a category
    assert pages.charted({}) == (0, 1)
    assert set(pages.reach) >= {"MeanBP", "age"}


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
