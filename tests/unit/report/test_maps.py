"""Dose maps, balance and small intervals."""

from report_documents import Page

from etips.report.maps import balance_plot, dose_map, small_interval
from etips.report.svg import Scale
from etips.results.exhibits import DoseGrid, FeatureBalance

GRID = DoseGrid(2, 2, "fluid", "vasopressor")


def test_a_dose_map_has_a_cell_for_every_pair_the_highest_row_on_top():
    page = Page(str(dose_map([0.1, 0.2, None, 0.0001], GRID, "shares", thin=[0, 0, 0, 1])))
    cells = [e for e in page.all("rect") if e.attributes.get("class") == "cell"]
    assert len(cells) == 4
    assert float(cells[0].attributes["y"]) > float(cells[2].attributes["y"])
    figures = [e.text for e in page.all("text") if "cell-text" in e.attributes["class"]]
    assert figures == ["10", "20", "hid.", "~0"]
    assert [e for e in page.all("rect") if e.attributes.get("fill") == "url(#thin)"]


def test_a_signed_map_tells_more_from_less():
    page = Page(str(dose_map([0.1, -0.2, 0.0, 0.05], GRID, "difference", signed=True)))
    figures = [e.text for e in page.all("text") if "cell-text" in e.attributes["class"]]
    assert figures == ["+10", "\u221220", "0", "+5.0"]


def ticks(grid):
    page = Page(str(dose_map([0.1] * (grid.n_rows * grid.n_columns), grid, "shares")))
    return [e for e in page.all("text") if "tick" in e.attributes["class"]]


def test_classes_are_ranges_where_those_are_known_and_short():
    rows = ("none", "up to 250 (median 90 ml)", "over 250")
    grid = DoseGrid(3, 2, "fluid", "vaso", rows, ("none", "a range that is far too long"))
    assert [e.text for e in ticks(grid)] == ["none", "\u2264250", ">250", "none", "1"]
    assert [e.text for e in ticks(GRID)] == ["none", "1", "none", "1"]


def test_ranges_too_wide_for_their_column_stand_aslant():
    levels = ("none", "up to 0.08", "0.0812-0.224", "over 0.224")
    wide = ticks(DoseGrid(2, 4, "fluid", "vaso", (), levels))
    assert [bool(e.attributes.get("transform")) for e in wide] == [False] * 2 + [True] * 4


def test_balance_shows_each_feature_before_and_after():
    features = [FeatureBalance("age", 0.3, 0.05), FeatureBalance("hr", None, -0.1)]
    page = Page(str(balance_plot(features, 0.1)))
    looks = [e.attributes["class"] for e in page.all("circle")]
    assert looks.count("hollow c1") == 1 + 1  # one of them in the legend
    assert looks.count("mark c0") == 2 + 1
    assert "age" in page.root.text
    assert "not balanced" not in page.root.text


def test_weights_before_balancing_stand_beside_those_after():
    features = [FeatureBalance("age", 0.3, 0.05, 0.2), FeatureBalance("hr", None, -0.1, 0.1)]
    page = Page(str(balance_plot(features, 0.1)))
    looks = [e.attributes["class"] for e in page.all("circle")]
    assert looks.count("mark c2") == 2 + 1
    assert "not balanced" in page.root.text


def test_a_small_interval_without_limits_is_a_point():
    scale = Scale(-1.0, 1.0, 0, 130)
    whole = Page(str(small_interval(0.1, -0.2, 0.4, scale, "gain")))
    point = Page(str(small_interval(0.1, None, None, scale, "gain")))
    assert len(whole.all("line")) == len(point.all("line")) + 1
