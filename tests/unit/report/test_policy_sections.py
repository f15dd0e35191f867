"""Sections on the policies: the table, folds, the path, where they were learned."""

from types import SimpleNamespace

import pytest
from report_documents import PATH, Page, changed, render, section_of, words

from etips.evaluation.estimators import ESTIMATORS
from etips.report.policy_sections import is_by_fold, shift
from etips.report.section import fill
from etips.results.parsing import parse_results
from etips.results.records import ActionShift, FeatureShift, ShiftResult


def test_the_loss_is_told_in_the_words_of_the_data(found):
    made, _ = changed(found)
    made["data"]["provenance"]["loss"] = "1 if dead"
    made["data"]["loss"] = None
    assert "in the words of the data: 1 if dead;" in words(made, "finding")
    made["data"]["loss"] = "The loss is column died as it stands."
    assert "The loss is column died as it stands." in words(made, "finding")


def test_every_policy_measure_and_formula_is_explained(found):
    made, _ = changed(found, sentence="Learned so.", label="ThatOne")
    made["tables"] = [{"title": "t", "note": None, "columns": ["a"], "rows": []}]
    made["methods"][1] |= {"sentence": "Learned otherwise."}
    made["methods"][1]["diagnostics"]["effective_sample_size"] = None
    page = Page(render(made))
    assert "under 11" in page.root.text
    meanings = {
        term.text: meaning.text
        for told in page.all("dl")
        if told.attributes["class"] == "words"
        for term, meaning in zip(told.all("dt"), told.all("dd"), strict=True)
    }
    assert meanings["p"] == "Learned so. The paper calls it ThatOne."
    assert meanings["q"] == "Learned otherwise."
    assert {"Verdict", "Matching factor", "Effective sample size", "SNIPS", "IPS"} <= set(meanings)
    assert meanings["SNIPS"] == ESTIMATORS["snips"].sentence


def test_a_legend_explains_the_colours_that_are_used(found):
    made, _ = changed(found)
    made["methods"][1]["verdict"] = "unusable"
    section = section_of(Page(render(made)), "policies")
    (legend,) = [e for e in section.all("dl") if e.attributes["class"] == "legend"]
    terms = [e.attributes["class"] for e in legend.all("span") if e.attributes.get("class")]
    used = [e.attributes.get("class", "") for t in section.all("tbody") for e in t.all("span")]
    assert "badge found-unusable" in terms
    assert set(terms) == {look for look in used if "found-" in look}
    assert "The log cannot tell" in legend.text


FOLD = {
    **dict.fromkeys(("accuracy", "matching_factor", "ips", "dr", "atenp", "n_matched")),
    **dict.fromkeys(("n_unmatched", "risk", "drawn_risk")),
    "n_learned_from": 40,
    "n_held_out": 20,
}


def chart(name):
    series = {"name": "p", "x": [0.1, 0.3], "y": [0.4, 0.5], "error": None}
    text = {"title": f"title of {name}", "caption": None, "x": "x", "y": "y"}
    return {"name": name, "kind": "lines", **text, "series": [series]}


@pytest.fixture
def study(found):
    made, _ = changed(found)
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


def test_the_figures_of_the_folds_are_folded_away_and_reconciled(found, study):
    assert 'id="folds"' not in render(found)
    page = Page(render(study))
    section = section_of(page, "folds")
    (details,) = section.all("details")
    assert "open" not in details.attributes
    assert next(details.all("table"))
    text = " ".join(section.text.split())
    main = study["methods"][0]
    pooled = next(e["risk"] for e in main["estimates"] if e["estimator"] == "snips")
    assert f"For p the risk by SNIPS is {pooled:.3f} with all decisions together and 0.450" in text
    assert main["verdict"] in text
    assert [e.text.strip() for e in section.all("small")] == ["± 0.010"]
    policies = section_of(page, "policies")
    assert [d.text.strip()[:10] for d in policies.all("details")] == ["What these"]


def test_where_the_study_is_about_accuracy_it_is_the_other_way_round(study):
    study["tables"][0]["columns"][1] = "accuracy"
    assert is_by_fold(parse_results(study))
    page = Page(render(study))
    assert "open" in next(section_of(page, "folds").all("details")).attributes
    first = next(section_of(page, "policies").all("details"))
    assert "All decisions judged together" in first.text
    assert next(first.all("table"))


def test_no_picture_is_on_the_page_twice(study):
    text = render(study)
    page = Page(text)
    assert "title of truth" in section_of(page, "evidence").text
    assert "title of atenp" in section_of(page, "folds").text
    assert "title of path-snips" not in text  # the path is drawn in its own section
    drawings = [str(e.inside) for e in page.all("svg", "div") if e.attributes.get("role") == "img"]
    assert len(set(drawings)) == len(drawings)
    study["exhibits"]["paths"] = {}
    assert "title of path-snips" in render(study)


def test_the_path_marks_the_kept_candidate_and_those_not_trusted(page):
    section = section_of(page, "path")
    rows = [" ".join(r.text.split()) for r in section.all("tr") if r.parent.tag == "tbody"]
    assert len(rows) == len(PATH)
    assert rows[1].startswith("translation 0.6 no ")
    assert rows[2].startswith("translation 0.8 (kept) yes ")
    assert rows[3].startswith("beta-IPS yes ")
    hollow = [e for e in section.all("use") if "fill: var(--card)" in e.attributes["style"]]
    assert len(hollow) == 2  # one candidate, three drawings; its size of 9 is hidden
    assert "hidden" in rows[1]


def test_a_lone_candidate_is_told_and_not_drawn(found):
    made, _ = changed(found)
    made["exhibits"]["paths"] = {"p": made["exhibits"]["paths"]["p"][2:3]}
    section = section_of(Page(render(made)), "path")
    assert not list(section.all("svg"))
    assert "One translation only" in section.text
    assert "translation 0.8 (kept)" in section.text
    assert "after selection" not in section.text


def test_the_kept_risk_is_said_to_be_after_selection_and_corrected(found):
    made, _ = changed(found)
    path = made["exhibits"]["paths"]["p"]
    assert "takes folds" in words(made, "path")
    path[2] |= {"corrected": 0.4321, "corrected_error": 0.0123, "epochs": 13}
    text = words(made, "path")
    assert f"after selection : it is that of the luckiest of {len(PATH)} candidates" in text
    assert "Corrected: 0.4321 (standard error 0.0123)" in text
    assert text.endswith("13 beta-IPS yes 0.4500 0.0200 1.10 70 \u2013")
    path[2]["chosen"] = False
    path.append(path[2] | {"translation": None, "chosen": True, "clinicians": True})
    assert "Kept: as the clinicians . No candidate did better" in words(made, "path")


def test_a_shift_shows_features_actions_and_losses_side_by_side():
    moved = ShiftResult(
        policy="run",
        there={"cohort": "Sepsis-3 from MIMIC-III"},
        here={"cohort": "Sepsis-3 from MIMIC-IV"},
        features=(FeatureShift("SOFA", 0.5, 1.1), FeatureShift("<age>", -0.3, 0.9)),
        n_features=47,
        n_apart=2,
        unlike=None,
        actions=tuple(ActionShift(f"fluid {i}", 0.1, None, 0.05 * i) for i in range(10)),
        practice=0.2,
        log_loss_there=2.5,
        log_loss_here=2.1,
        loss_there=None,
        loss_here=0.424,
        distance="moved",
        sentences=("The two differ.",),
    )
    assert shift(SimpleNamespace(shift=None)) is None
    context = shift(SimpleNamespace(shift=moved))
    assert len(context["actions"]) == 8
    html = fill("population_shift.html", context)
    for text in ("The two differ.", "MIMIC-IV", "SOFA", "0.424", "+0.50"):
        assert text in html
    assert "<age>" not in html
