"""Fold by fold: one set of figures is open, the other folded away and reconciled."""

import json

import pytest
from report_documents import Page, render, section_of

from etips.report.sections.study_folds import is_by_fold
from etips.results.parsing import parse_results

FOLD = {
    **dict.fromkeys(("accuracy", "matching_factor", "ips", "dr", "atenp", "n_matched")),
    **dict.fromkeys(("n_unmatched", "risk", "drawn_risk")),
    "n_learned_from": 40,
    "n_held_out": 20,
}


def series(name):
    return {"name": name, "x": [0.1, 0.3], "y": [0.4, 0.5], "error": None}


def chart(name):
    text = {"title": f"title of {name}", "caption": None, "x": "x", "y": "y"}
    return {"name": name, "kind": "lines", **text, "series": [series("p")]}


@pytest.fixture
def made(found):
    made = json.loads(json.dumps(found))
    row = ["p", "0.500 ± 0.010", "reliable"]
    table = {"title": "Table", "note": "A note.", "columns": ["policy", "SNIPS", "verdict"]}
    folds = {"p": [FOLD | {"snips": 0.4}, FOLD | {"snips": 0.5}]}
    return made | {
        "title": "A study",
        "lead": "",
        "tables": [{**table, "rows": [row]}],
        "charts": [chart(name) for name in ("atenp", "truth", "path-snips", "path-factor")],
        "study": {"experiment": {}, "folds": folds},
    }


def test_an_evaluation_has_no_folds_to_show(found):
    assert 'id="folds"' not in render(found)


def test_the_figures_of_the_folds_are_folded_away_and_reconciled(made):
    section = section_of(Page(render(made)), "folds")
    (details,) = section.all("details")
    assert "open" not in details.attributes
    assert next(details.all("table"))
    text = " ".join(section.text.split())
    pooled = next(e["risk"] for e in made["methods"][0]["estimates"] if e["estimator"] == "snips")
    assert f"For p the risk by SNIPS is {pooled:.3f} with all decisions together and 0.450" in text
    assert made["methods"][0]["verdict"] in text
    policies = section_of(Page(render(made)), "policies")
    assert [d.text.strip()[:10] for d in policies.all("details")] == ["What these"]


def test_where_the_study_is_about_accuracy_it_is_the_other_way_round(made):
    made["tables"][0]["columns"][1] = "accuracy"
    assert is_by_fold(parse_results(made))
    page = Page(render(made))
    assert "open" in next(section_of(page, "folds").all("details")).attributes
    first = next(section_of(page, "policies").all("details"))
    assert "All decisions judged together" in first.text
    assert next(first.all("table"))


def test_no_picture_is_on_the_page_twice(made):
    text = render(made)
    assert "title of truth" in section_of(Page(text), "evidence").text
    assert "title of atenp" in section_of(Page(text), "folds").text
    assert "title of path-snips" not in text  # the path is drawn in its own section
    drawings = [str(e.inside) for e in Page(text).all("svg") if e.attributes.get("role")]
    assert len(set(drawings)) == len(drawings)
    made["exhibits"]["paths"] = {}
    assert "title of path-snips" in render(made)


def test_a_spread_stands_below_its_figure_so_that_the_table_is_narrow(made):
    section = section_of(Page(render(made)), "folds")
    assert [e.text.strip() for e in section.all("small")] == ["± 0.010"]
