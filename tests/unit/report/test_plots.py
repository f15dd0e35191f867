"""Charts as the page draws them."""

from dataclasses import replace

import pytest
from report_charts import CHART, in_words, scatter_of
from report_documents import Page

from etips.report.plots import Guides, band, plot
from etips.results.results import GammaBound
from etips.results.study_result import Series


@pytest.mark.parametrize("kind", ["scatter", "lines", "bars"])
def test_the_page_draws_the_charts_of_a_study(kind):
    for chart in (replace(CHART, kind=kind), in_words(kind)):
        page = Page(str(plot(chart)))
        (drawing,) = page.all("svg")
        assert drawing.attributes["role"] == "img"
        marks = [e for e in page.all("circle", "rect") if "mark" in e.attributes["class"]]
        assert len(marks) == 5 + 2  # one number is missing; two squares of the legend


def test_ten_methods_are_told_apart_by_colour_and_shape():
    page = Page(str(plot(scatter_of(*range(10)))))
    marks = page.all("circle", "rect", "polygon")
    looks = [(mark.tag, mark.attributes["class"]) for mark in marks]
    assert len(looks) == 20  # a point and an entry of the legend each
    assert len(set(looks)) == 10


def test_points_stand_where_their_numbers_are():
    one = Series("a", x=(0.0, 1.0, 2.0), y=(0.0, 5.0, 10.0))
    page = Page(str(plot(replace(CHART, kind="scatter", series=(one,)))))
    spots = [(float(e.attributes["cx"]), float(e.attributes["cy"])) for e in page.all("circle")]
    assert [x for x, _ in spots] == sorted(x for x, _ in spots)
    assert [y for _, y in spots] == sorted((y for _, y in spots), reverse=True)
    assert spots[1][0] == pytest.approx((spots[0][0] + spots[2][0]) / 2, abs=0.02)


def test_guides_mark_points_of_the_first_series_alone():
    guides = Guides(across=(2.5, "the clinicians"), hollow=(0,), chosen=2)
    page = Page(str(plot(CHART, guides)))
    assert len([e for e in page.all("circle") if "hollow" in e.attributes["class"]]) == 1
    assert "the clinicians" in page.root.text
    assert len([e for e in page.all("line") if e.attributes["class"] == "guide"]) == 1


def test_the_band_of_hidden_confounding_has_both_ends_at_every_gamma():
    bounds = [GammaBound(1.0, 0.4, 0.5), GammaBound(2.0, 0.3, 0.6), GammaBound(3.0, None, None)]
    page = Page(str(band(bounds, 0.45, "a band")))
    assert len(page.all("circle")) == 4
    assert "clinicians" in page.root.text
