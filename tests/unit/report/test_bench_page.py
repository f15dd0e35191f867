"""The page of a bench: self-contained, every method of every world, names only as text."""

from dataclasses import replace

from told_benches import BENCH, STANDING

from etips.report.bench_page import behind_plot, render_bench


def test_the_page_tells_the_finding_and_loads_nothing():
    page = render_bench(BENCH)
    assert "in 1 of 1 worlds" in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert "<script" not in page
    assert "<b>why</b>" not in page
    for name in ("owl", "lightgbm", "etips", "obp-ipw"):
        assert name in page


def test_where_ours_is_behind_the_page_says_where_and_why():
    behind = replace(STANDING, ours_level=False, why=("It is bold.",))
    page = render_bench(replace(BENCH, standings=(behind,)))
    assert "in 0 of 1 worlds" in page
    assert page.count("It is bold.") == 2


def test_the_plot_has_a_row_for_everybody():
    assert str(behind_plot(STANDING)).count("failed") == 1
