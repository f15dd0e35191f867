"""Scales, ticks and elements."""

import pytest
from report_documents import Page

from etips.report.svg import Scale, tag, tick_text


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
