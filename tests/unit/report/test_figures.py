"""Charts as files, and the drawings of the page."""

import pytest
from report_documents import Page

from etips.errors import SettingError
from etips.report.figures import draw
from etips.report.plots import intervals, plot
from etips.report.svg import Scale, tag, tick_text

CHART = {
    "name": "c",
    "kind": "lines",
    "title": "$title_1$ <b>",
    "caption": "",
    "x": "x",
    "y": "y",
    "series": [
        {"name": "a$", "x": [0.0, 1.0, 2.0], "y": [1.0, None, 3.0], "error": [0.1, None, None]},
        {"name": "中文", "x": [0.0, 1.0, 2.0], "y": [2.0, 2.0, 2.0], "error": None},
    ],
}


def in_words(kind):
    series = [{**s, "x": ["low", "middle $", "high"]} for s in CHART["series"]]
    return {**CHART, "kind": kind, "series": series}


@pytest.mark.parametrize("kind", ["scatter", "lines", "bars"])
@pytest.mark.parametrize(("format_", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_a_chart_is_drawn_the_same_every_time(kind, format_, start):
    for chart in ({**CHART, "kind": kind}, in_words(kind)):
        found = draw(chart, format_)
        assert found.startswith(start)
        assert found == draw(chart, format_)
        if format_ == "svg":
            assert b"<text" not in found  # letters are shapes: no font is needed to read it
            assert b"<script" not in found


def test_a_chart_of_nothing_is_drawn_and_other_kinds_are_refused():
    assert draw({**CHART, "series": [{"name": "a", "x": [], "y": [], "error": None}]})
    with pytest.raises(SettingError, match=r"^chart: "):
        draw({**CHART, "kind": "pie"})
    with pytest.raises(SettingError, match=r"^format: "):
        draw(CHART, "pdf")


@pytest.mark.parametrize("kind", ["scatter", "lines", "bars"])
def test_the_page_draws_the_same_charts_itself(kind):
    for chart in ({**CHART, "kind": kind}, in_words(kind)):
        page = Page(str(plot(chart)))
        (drawing,) = page.all("svg")
        assert drawing.attributes["role"] == "img"
        marks = [e for e in page.all("circle", "rect") if "mark" in e.attributes["class"]]
        assert len(marks) == 5 + 2  # one number is missing; two squares of the legend


def scatter_of(*ys):
    """Series of the same name, one point each; None for a series without."""
    series = [{"name": "a", "x": [1.0], "y": [y], "error": None} for y in ys]
    return {**CHART, "kind": "scatter", "series": series}


def test_ten_methods_are_told_apart_by_colour_and_shape():
    page = Page(str(plot(scatter_of(*range(10)))))
    marks = page.all("circle", "rect", "polygon")
    looks = [(mark.tag, mark.attributes["class"]) for mark in marks]
    assert len(looks) == 20  # a point and an entry of the legend each
    assert len(set(looks)) == 10


def test_ten_methods_are_told_apart_in_files_too():
    alone = [draw(scatter_of(*(1.0 if k == own else None for k in range(10)))) for own in range(10)]
    assert len(set(alone)) == 10


def test_names_of_bars_stand_beside_them():
    page = Page(str(plot(in_words("bars"))))
    names = [e for e in page.all("text") if e.attributes["class"] == "tick end"]
    bars = [e for e in page.all("rect") if e.attributes["height"] == "9"]
    for place, label in enumerate(names):
        group = [b for b in bars if 32 * place <= float(b.attributes["y"]) < 32 * (place + 1)]
        tops = [float(b.attributes["y"]) for b in group]
        if len(tops) == 2:
            middle = (min(tops) + max(tops) + 9) / 2
            assert float(label.attributes["y"]) - 4 == pytest.approx(middle, abs=1)


@pytest.mark.parametrize(
    ("low", "high", "tips"),
    [(0.3, 0.5, 0), (0.1, 0.5, 1), (0.1, 0.9, 2), (0.85, 0.9, 1), (0.1, 0.15, 1)],
)
def test_an_interval_beyond_the_scale_points_where_it_goes_on(low, high, tips):
    estimate = {"estimator": "snips", "risk": (low + high) / 2, "low": low, "high": high}
    method = {"name": "p", "estimates": [estimate], "verdict": "doubtful", "truth": None}
    page = Page(str(intervals(method, Scale(0.2, 0.8, 112, 300), None)))
    assert len(page.all("polyline")) == tips


def test_points_stand_where_their_numbers_are():
    one = {"name": "a", "x": [0.0, 1.0, 2.0], "y": [0.0, 5.0, 10.0], "error": None}
    page = Page(str(plot({**CHART, "kind": "scatter", "series": [one]})))
    spots = [(float(e.attributes["cx"]), float(e.attributes["cy"])) for e in page.all("circle")]
    assert [x for x, _ in spots] == sorted(x for x, _ in spots)
    assert [y for _, y in spots] == sorted((y for _, y in spots), reverse=True)
    assert spots[1][0] == pytest.approx((spots[0][0] + spots[2][0]) / 2, abs=0.02)


def test_a_scale_keeps_to_its_ends_and_has_round_ticks():
    scale = Scale(0.0, 1.0, 10, 110)
    assert scale.at(0.5) == 60
    assert (scale.at(-3), scale.at(7)) == (10, 110)
    assert scale.ticks(4) == pytest.approx([0, 0.25, 0.5, 0.75, 1.0])
    assert [tick_text(t, scale.ticks(4)) for t in scale.ticks(4)][1] == "0.25"
    assert tick_text(14_000, [14_000, 15_000]) == "14k"
    for values in ([], [None], [3.0], [0.0, 0.0], [1e-9, 2e-9], [float("inf"), 1.0]):
        made = Scale.around(values, 0, 100)
        assert made.low < made.high
        assert 1 <= len(made.ticks()) < 20


def test_whatever_goes_into_an_element_is_escaped():
    made = tag("text", "<b>&", title="\"'><", class_="a b", data_x=1.0, gone=None)
    page = Page(str(made))
    (element,) = page.all()
    assert element.text == "<b>&"
    assert element.attributes == {"title": "\"'><", "class": "a b", "data-x": "1"}
