"""Charts as files and on the page; rows, dose maps and balance."""

import threading
from dataclasses import replace

import pytest
from report_documents import Page

from etips.errors import SettingError
from etips.report.drawings import (
    Axis,
    Mark,
    Row,
    Scale,
    balance_plot,
    dose_map,
    interval,
    rows,
    tick_text,
)
from etips.report.evidence_sections import risk_scale
from etips.report.figures import band, draw, plot
from etips.results.exhibits import DoseGrid, FeatureBalance
from etips.results.records import EstimateResult, GammaBound, MethodResult
from etips.results.study_result import Chart, Series

NUMBERS = (
    Series("a$", x=(0.0, 1.0, 2.0), y=(1.0, None, 3.0), error=(0.1, None, None)),
    Series("中文", x=(0.0, 1.0, 2.0), y=(2.0, 2.0, 2.0)),
)
CHART = Chart("c", "lines", "$title_1$ <b>", caption="", x="x", y="y", series=NUMBERS)
GRID = DoseGrid(2, 2, "fluid", "vasopressor")


def in_words(kind):
    """The same along an axis of names."""
    series = tuple(replace(own, x=("low", "middle $", "high")) for own in NUMBERS)
    return replace(CHART, kind=kind, series=series)


def scatter_of(*ys):
    """Series of the same name, one point each; None for a series without."""
    series = tuple(Series("a", x=(1.0,), y=(y,)) for y in ys)
    return replace(CHART, kind="scatter", series=series)


def looks(page, tag="i"):
    return [e.attributes.get("class", "").split() for e in page.all(tag)]


@pytest.mark.parametrize("kind", ["scatter", "lines", "bars"])
@pytest.mark.parametrize(("format_", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_a_chart_is_drawn_the_same_every_time(kind, format_, start):
    for chart in (replace(CHART, kind=kind), in_words(kind)):
        file = draw(chart, format_)
        assert file.startswith(start)
        assert file == draw(chart, format_)
        if format_ == "svg":
            assert b"<text" not in file  # letters are shapes: no font is needed to read it
            assert b"<script" not in file


def test_a_chart_of_nothing_is_drawn_and_other_kinds_are_refused():
    assert draw(replace(CHART, series=(Series("a", x=(), y=()),)))
    with pytest.raises(SettingError, match=r"^chart: "):
        draw(replace(CHART, kind="pie"))
    with pytest.raises(SettingError, match=r"^format: "):
        draw(CHART, "pdf")


def test_ten_methods_are_told_apart_by_colour_and_shape():
    alone = [scatter_of(*(1.0 if k == own else None for k in range(10))) for own in range(10)]
    assert len({draw(chart) for chart in alone}) == 10
    page = Page(str(plot(scatter_of(*range(10)))))
    marks = [(e.attributes["href"], e.attributes["style"]) for e in page.all("use")]
    assert len(marks) == 20  # a point and an entry of the legend each
    assert len(set(marks)) == 10


def test_a_page_draws_charts_in_its_own_colours_and_letters():
    drawn = str(plot(replace(CHART, kind="lines")))
    page = Page(drawn)
    (svg,) = page.all("svg")
    assert svg.attributes["role"] == "img"
    assert len(page.all("use")) == 5 + 2  # one number is missing; two entries of the legend
    assert "var(--c0)" in drawn
    assert "#" not in drawn.replace('href="#', "").replace("&#", "")
    assert "font" not in drawn
    assert {"a$", "中文"} <= {e.text for e in page.all("text")}
    assert str(plot(replace(CHART, kind="lines"))) == drawn


def test_the_band_of_hidden_confounding_has_both_ends_at_every_gamma():
    ends = [(1.0, 0.4, 0.5), (2.0, 0.3, 0.6), (3.0, None, None)]
    bounds = [GammaBound(*own, None, None) for own in ends]
    page = Page(str(band(bounds, 0.45, "a band")))
    assert len([e for e in page.all("use") if "opacity" not in e.attributes["style"]]) == 4
    assert "clinicians" in page.root.text


def test_threads_that_draw_at_once_draw_the_same():
    wanted, drawn = draw(CHART), []
    threads = [threading.Thread(target=lambda: drawn.append(draw(CHART))) for _ in range(3)]
    threads += [threading.Thread(target=plot, args=(CHART,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert drawn == [wanted] * 3


def test_a_scale_keeps_to_its_ends_and_has_round_ticks():
    scale = Scale(0.0, 1.0)
    assert scale.at(0.5) == 50
    assert (scale.at(-3), scale.at(7)) == (0, 100)
    assert scale.ticks(4) == pytest.approx([0, 0.25, 0.5, 0.75, 1.0])
    assert [tick_text(t, scale.ticks(4)) for t in scale.ticks(4)][1] == "0.25"
    assert tick_text(14_000, [14_000, 15_000]) == "14k"
    for values in ([], [None], [3.0], [0.0, 0.0], [1e-9, 2e-9], [float("inf"), 1.0]):
        made = Scale.around(values)
        assert made.low < made.high
        assert 1 <= len(made.ticks()) < 20


@pytest.mark.parametrize(
    ("low", "high", "tips"),
    [(0.3, 0.5, 0), (0.1, 0.5, 1), (0.1, 0.9, 2), (0.85, 0.9, 1), (0.1, 0.15, 1)],
)
def test_an_interval_beyond_the_scale_points_where_it_goes_on(low, high, tips):
    row = interval("p", ((low + high) / 2, low, high), "words")
    page = Page(str(rows([row], Axis(Scale(0.2, 0.8), "risk"), "one row")))
    assert sum("tip" in look for look in looks(page)) == tips


def test_a_policy_without_evidence_does_not_stretch_the_scale():
    def method(low, high, verdict):
        estimate = EstimateResult("snips", (low + high) / 2, 0.1, low, high)
        return MethodResult("p", (estimate,), None, verdict, (), None)

    sound, wild = method(0.3, 0.5, "doubtful"), method(-9.0, 9.0, "unusable")
    assert risk_scale([sound, wild], None) == risk_scale([sound], None)
    assert risk_scale([wild], None).high >= 9


def test_rows_stand_at_shares_of_the_width_and_names_are_escaped():
    drawn = [
        interval("<b>", (0.5, 0.3, 0.7), "0.500", strong=True),
        Row("second", "-"),
    ]
    axis = Axis(Scale(0.0, 1.0), "risk", [Mark("guide", 0.4), Mark("truth", 0.6)])
    page = Page(str(rows(drawn, axis, "two rows")))
    places = {e.attributes.get("class"): e.attributes["style"] for e in page.all("i")}
    assert places["dot c0"] == "left:50.00%"
    assert places["error c0"] == "left:30.00%;width:40.00%"
    assert {"<b>", "second", "0.500", "risk"} <= {e.text for e in page.all("span")}
    assert "\u25c6" in page.root.text


def test_bars_have_a_row_a_number_and_the_name_beside_the_first():
    page = Page(str(plot(in_words("bars"))))
    names = [next(row.all("span")).text for row in page.all("div") if row.parent.tag == "div"]
    assert names == ["low", "", "middle $", "", "high", ""]
    assert sum("bar" in look for look in looks(page)) == 5 + 2  # two of the legend
    assert "hidden" in page.root.text


def test_balance_shows_each_feature_before_and_after():
    features = [FeatureBalance("age", 0.3, 0.05), FeatureBalance("hr", None, -0.1)]
    page = Page(str(balance_plot(features, 0.1)))
    assert looks(page).count(["dot", "hollow", "c1"]) == 1 + 1  # one of them in the legend
    assert looks(page).count(["dot", "c0"]) == 2 + 1
    assert "age" in page.root.text


def test_a_dose_map_has_a_cell_for_every_pair_the_highest_row_on_top():
    page = Page(str(dose_map([0.1, 0.2, None, 0.0001], GRID, "shares", thin=[0, 0, 0, 1])))
    assert [e.text for e in page.all("b")] == ["hid.", "~0", "10", "20"]
    assert [("thin" in look) for look in looks(page, "span") if "cell" in look] == [0, 1, 0, 0]
    drawn = dose_map([0.1, -0.2, 0.0, 0.05], GRID, "difference", signed=True, rings=[(1, "c0")])
    page = Page(str(drawn))
    assert [e.text for e in page.all("b")] == ["0", "+5.0", "+10", "\u221220"]
    (ringed,) = [look for look in looks(page, "span") if "ring-c0" in look]
    assert "c1" in ringed


def test_classes_are_ranges_where_those_are_known_and_short():
    ranges = ("none", "up to 250 (median 90 ml)", "over 250")
    known = DoseGrid(3, 2, "fluid", "vaso", ranges, ("none", "a range that is far too long"))
    for grid, wanted in (
        (known, [">250", "\u2264250", "none", "", "none", "1"]),
        (GRID, ["1", "none", "", "none", "1"]),
    ):
        page = Page(str(dose_map([0.1] * (grid.n_rows * grid.n_columns), grid, "shares")))
        spans = [e for e in page.all("span") if "cell" not in e.attributes.get("class", "")]
        assert [e.text for e in spans] == wanted
