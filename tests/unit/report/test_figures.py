"""Charts as files."""

from dataclasses import replace

import pytest
from report_charts import CHART, in_words, scatter_of

from etips.errors import SettingError
from etips.report.figures import draw
from etips.results.study_result import Series


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


def test_ten_methods_are_told_apart_in_files_too():
    alone = [draw(scatter_of(*(1.0 if k == own else None for k in range(10)))) for own in range(10)]
    assert len(set(alone)) == 10
