"""The page of a comparison."""

import json
import re

import pytest

from etips.errors import FileError
from etips.report.comparison_page import render_comparison, write_comparison
from etips.report.tables import show_pairs
from etips.results.comparison_result import (
    CLINICIANS,
    AlikeResult,
    CarriedResult,
    ComparedPolicy,
    Comparison,
    Figure,
    OverlapResult,
    PairResult,
    PlaceResult,
    PlacesResult,
)
from etips.results.records import DataSummary

EVIL = '<script>alert("x")</script>'


def figure(value):
    return Figure(value, value - 0.1, value + 0.1, 0.05)


@pytest.fixture
def comparison():
    data = DataSummary(n_stays=300, n_decisions=1200, n_actions=2, lag=0, mean_loss=0.3)
    pair = PairResult(
        EVIL, CLINICIANS, figure(-0.2), 0.01, 0.02, True, "reliable", (), "better", "lower risk"
    )
    doubt = PairResult(
        "b", CLINICIANS, figure(0.0), 0.9, 0.9, False, "doubtful", ("Few stays.",), "doubtful",
        "no difference shown, doubtful",
    )  # fmt: skip
    hidden = PlaceResult("level not shown")
    place = PlaceResult(
        "north", 200, 800,
        (ComparedPolicy(CLINICIANS, figure(0.3), None),
         ComparedPolicy("b", figure(0.3), "doubtful", (), figure(0.0))),
    )  # fmt: skip
    places = PlacesResult(
        "site",
        (place, hidden),
        (AlikeResult(CLINICIANS, "risk", 3.0, 1, 0.1, 0.1, 0.2, "no difference shown"),),
        (OverlapResult("north", "south", "poor", 0.04, 0.97, 0.2, 0.1, "Too few."),),
        (CarriedResult("b", "north", "south", figure(0.3), Figure(), figure(0.4), Figure(),
                       "unusable"),),
    )  # fmt: skip
    policies = (
        ComparedPolicy(EVIL, figure(0.1), "reliable", sentence="case when 1 < 2 then 'a' end"),
        ComparedPolicy("b", figure(0.3), "doubtful", ("Few stays.",)),
        ComparedPolicy(CLINICIANS, figure(0.3), None),
    )
    return Comparison(data, policies, (pair, doubt), "sndr", places=places, notes={"clip": "0.01"})


def test_the_page_has_every_section_and_no_markup_of_a_name(comparison):
    page = render_comparison(comparison)
    for section in ("finding", "pairs", "policies", "places", "carried", "record"):
        assert f'id="{section}"' in page
    assert "<script" not in page
    assert "alert(&#34;x&#34;)" in page
    assert "hidden: too few people" in page
    assert "Few stays." in page
    assert page.count('class="rows"') >= 3
    assert not re.search(r'(src|href)="(?!#)', page)


def test_without_places_or_pairs_their_sections_are_left_out(comparison):
    from dataclasses import replace

    page = render_comparison(replace(comparison, places=None))
    assert 'id="places"' not in page
    alone = replace(comparison, pairs=(), policies=comparison.policies[-1:])
    page = render_comparison(alone)
    assert 'id="pairs"' not in page
    assert "Practice by site" in page


def test_it_is_written_as_a_page_or_as_figures(comparison, tmp_path):
    assert comparison.report(tmp_path / "c.html").read_text().startswith("<!doctype html>")
    write_comparison(comparison, tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text())["estimator"] == "sndr"
    with pytest.raises(FileError, match=r"must end in \.html or \.json"):
        comparison.report(tmp_path / "c.pdf")


def test_a_notebook_shows_the_pairs(comparison):
    shown = comparison._repr_html_()
    assert shown == show_pairs(comparison)
    assert "<script" not in shown
    assert shown.count("<tr>") == 3
