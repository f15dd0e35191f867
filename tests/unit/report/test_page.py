"""The page: whole, honest, self-contained, whatever the names in it."""

import json
import re
import subprocess
import sys

import pytest
from report_documents import PATH, Element, Page, document, render

from etips.errors import FileError
from etips.evaluation.estimators import ESTIMATORS
from etips.report.page import SECTIONS
from etips.report.wording import clean, name, number, percent, signed

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</style></svg></table><iframe src=//evil>",
    "{{ 7 * 7 }}{% include 'style.css' %}",
    '=HYPERLINK("http://evil")',
    "\u202egnp.exe\u2066\u200f",
    "line\nbreak\ttab\x00nul\x1b[31m",
    "&lt;b&gt; &amp; ampersand",
    "x" * 10_000,
    "中文 العربية עברית 🩺",
    "",
)


@pytest.fixture(scope="module")
def found():
    return document()


@pytest.fixture(scope="module")
def page(found):
    return Page(render(found))


def test_sections_stand_in_the_order_of_the_contract(page):
    ids = [section.attributes["id"] for section in page.all("section")]
    assert ids == ["finding", *(section.name for section in SECTIONS)]
    assert ids == [
        *("finding", "policies", "evidence", "path", "actions", "overlap", "balance"),
        *("subgroups", "sensitivity", "flow", "settings", "tripod"),
    ]


def test_h1_the_page_carries_what_a_report_must(found, page):
    """H1: on the page too, not only in the document."""
    text = " ".join(page.root.text.split())
    for words in (
        *("not for clinical use", "stays with a decision", "missing", "Calibration error"),
        *("Effective sample size", "Matching factor", "95 % interval", "verdict"),
        *("Seeds", "Versions", found["exhibits"]["fingerprint"]),
    ):
        assert words in text
    for method in found["methods"]:
        assert method["name"] in text
    for version in found["exhibits"]["versions"].values():
        assert version in text


def test_h3_the_checklist_of_tripod_ai_leads_to_sections_that_are_there(page):
    """H3: 27 rows; every link has an anchor on the page."""
    anchors = {e.attributes["id"] for e in page.all() if "id" in e.attributes}
    links = [e.attributes["href"] for e in page.all("a")]
    assert {link.removeprefix("#") for link in links} <= anchors
    rows = [row for row in page.all("tr") if re.match(r"\s*\d+\. ", row.text)]
    assert len(rows) == 27


ABSENT = ("torch", "pyarrow", "duckdb", "ibis", "polars", "pandas", "sklearn", "scipy")
ALONE = """
import sys
from pathlib import Path
for name in {absent}:
    sys.modules[name] = None
from etips.report.page import render
from etips.results.parsing import read_results
Path({page!r}).write_text(render(read_results(Path({results!r}))))
"""


def test_a_page_is_made_from_results_alone_where_torch_is_not_installed(found, tmp_path):
    results, page = tmp_path / "results.json", tmp_path / "page.html"
    results.write_text(json.dumps(found))
    script = ALONE.format(absent=ABSENT, page=str(page), results=str(results))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert page.read_text() == render(found)


def holder(element):
    """The smallest part of the page that is read as one: a row, a figure, the finding."""
    while element.tag not in ("tr", "figure", "p", "section", "root"):
        element = element.parent
    return element


@pytest.mark.parametrize("world", ["clinic", "icu-sepsis"])
def test_h2_no_number_of_an_unreliable_policy_stands_without_its_verdict(world):
    """H2: rows, figures, sentences; each risk is made unique so that it can be looked for."""
    made = document(names=("good", "bad"), world=world)
    marked = {}
    made["methods"][0]["verdict"], made["methods"][1]["verdict"] = "doubtful", "unusable"
    for method in made["methods"]:
        for estimate in method["estimates"]:
            estimate["risk"] = round(0.1234 + len(marked) / 1000, 4)
            marked[f"{estimate['risk']:.3f}"] = method["verdict"]
        method["gain"]["difference"] = -round(0.0611 + len(marked) / 1000, 4)
        marked[f"{method['gain']['difference']:.3f}".replace("-", "\u2212")] = method["verdict"]
    read = Page(render(made))
    seen = set()
    for element in read.all():
        for text in (i for i in element.inside if isinstance(i, str)):
            for shown, verdict in marked.items():
                if shown in text:
                    seen.add(shown)
                    assert verdict in holder(element).text, (shown, holder(element).tag)
    assert len(seen) >= len(marked) - 1


def test_h2_subgroups_and_abstention_have_a_verdict_in_every_row(page):
    tables = {s.attributes["id"]: s for s in page.all("section")}
    for anchor in ("subgroups", "overlap"):
        rows = [r for r in tables[anchor].all("tr") if r.parent.tag == "tbody"]
        assert rows
        for row in rows:
            assert re.search("reliable|doubtful|unusable|hidden", row.text)


def test_the_finding_says_better_only_when_reliable_and_shown(found):
    changed = json.loads(json.dumps(found))
    main = changed["methods"][0]
    main["gain"] |= {"better": True, "difference": -0.1, "low": -0.2, "high": -0.05}
    main["verdict"] = "reliable"
    assert "shown to be lower" in finding_of(changed)
    assert "yes, but" not in Page(render(changed)).root.text
    main["verdict"] = "unusable"
    said = finding_of(changed)
    assert "were the verdict not unusable" in said
    assert "do not use that number" in said
    assert "yes, but unusable" in Page(render(changed)).root.text
    main["gain"] = dict.fromkeys(main["gain"])
    assert "cannot be said" in finding_of(changed)


def finding_of(made):
    (section,) = [s for s in Page(render(made)).all("section") if s.attributes["id"] == "finding"]
    return " ".join(section.text.split())


def test_the_page_loads_nothing_and_runs_nothing(page):
    for element in page.all():
        assert element.tag not in ("script", "iframe", "img", "link", "object", "embed", "base")
        for key, value in element.attributes.items():
            assert not key.startswith("on")
            if key in ("src", "href"):
                assert value.startswith("#")
    (policy,) = [
        e.attributes["content"]
        for e in page.all("meta")
        if e.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "url(" not in render(document(60)).split("</style>")[0]


def test_drawings_speak_and_tables_have_headers(page):
    for drawing in page.all("svg"):
        assert drawing.attributes.get("aria-label") or drawing.attributes["aria-hidden"] == "true"
    for table in page.all("table"):
        heads = [cell for row in table.all("thead") for cell in row.all("th")]
        assert heads
        assert all(cell.attributes["scope"] == "col" for cell in heads)
        for row in (r for r in table.all("tr") if r.parent.tag == "tbody"):
            first = next(part for part in row.inside if isinstance(part, Element))
            assert (first.tag, first.attributes["scope"]) == ("th", "row")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_p5_a_hostile_name_anywhere_leaves_the_page_intact(found, hostile):
    """P5: policy, action, feature, level, estimator, note, setting, title, table and chart."""
    text = render(swapped(found, hostile))
    page = Page(text)
    if hostile:  # an empty note or lead is left out
        assert shape(page) == shape(Page(render(swapped(found, "plain"))))
    assert not [e for e in page.all() if e.tag in ("script", "img", "iframe", "b49")]
    assert "49" not in page.all("title")[0].text
    assert len(text) < 400_000
    assert not set("\u202e\u2066\u200f\x00\x1b") & set(text)
    longest = max(
        len(word) for e in page.all() for i in e.inside if isinstance(i, str) for word in i.split()
    )
    assert longest <= 1000  # prose breaks anywhere; names are cut far shorter


def swapped(found, word):
    """The document with the word in every place that a user or a data set names."""
    made = json.loads(json.dumps(found))
    x = made["exhibits"]
    made |= {"title": word, "lead": word}
    made["tables"] = [{"title": word, "note": word, "columns": [word, "b"], "rows": [[word, 1.0]]}]
    series = {"name": word, "x": [word, "b"], "y": [1.0, None], "error": None}
    numbers = {"name": word, "x": [1, 2], "y": [1.0, 2.0], "error": [0.1, None]}
    chart = {"name": word, "title": word, "caption": word, "x": word, "y": word}
    made["charts"] = [
        {**chart, "kind": "bars", "series": [series, series]},
        {**chart, "kind": "lines", "series": [numbers, numbers]},
        {**chart, "kind": "scatter", "series": [numbers]},
    ]
    x["actions"]["names"][0] = word
    x["balance"]["features"][0]["name"] = word
    x["missingness"]["features"] = [{"name": word, "share": 0.5}]
    x["flow"]["stages"][0]["name"] = word
    x["subgroups"][0] = {**x["subgroups"][0], "feature": word}
    x["subgroups"][0]["rows"][0]["level"] = word
    x["settings"][word] = {word: [word]}
    made["data"]["provenance"][word] = word
    for method in made["methods"]:
        method["reasons"] = [word]
        method["notes"] = {word: word}
        method["estimates"][0]["estimator"] = word
    x["paths"] = {word: x["paths"]["p"]}
    x["headline"] = made["methods"][0]["name"] = word
    return made


def shape(page):
    """How many elements of each kind there are."""
    tags = [element.tag for element in page.all()]
    return {tag: tags.count(tag) for tag in set(tags)}


def test_a_document_without_exhibits_still_makes_a_page(found):
    bare = {key: found[key] for key in ("data", "methods", "seconds")}
    keep = ("name", "estimates", "diagnostics", "verdict", "reasons", "truth")
    bare["methods"] = [{key: m[key] for key in keep} for m in bare["methods"]]
    text = " ".join(Page(render(bare)).root.text.split())
    assert text.count("not recorded with these results") >= 4
    empty = {**bare, "methods": []}
    assert "hold no policy" in Page(render(empty)).root.text
    only_truth = {**found["methods"][0], "estimates": [], "verdict": None, "diagnostics": None}
    assert "was estimated from the log" in Page(render({**bare, "methods": [only_truth]})).root.text


def test_names_are_one_line_without_marks_that_turn_text_around():
    assert clean("  two\nwords\tand\x00 \u202emore ") == "two words and more"
    assert clean("x" * 70) == "x" * 59 + "\u2026"
    assert str(name("a" * 400)).count("a") == 59 + 299


@pytest.mark.parametrize(
    ("value", "plain", "with_sign"),
    [(-0.0001, "0.000", "0.000"), (0.0001, "0.000", "0.000"), (-0.25, "\u22120.250", "\u22120.250"),
     (1.5, "1.500", "+1.500"), (None, "\u2013", "\u2013"), (True, "\u2013", "\u2013")],
)  # fmt: skip
def test_numbers_that_round_to_nothing_have_no_sign(value, plain, with_sign):
    assert number(value) == plain
    assert signed(value) == with_sign


@pytest.mark.parametrize(
    ("value", "digits", "shown"),
    [
        (0.0, 0, "0\u00a0%"),
        (0.004, 0, "<1\u00a0%"),
        (0.0004, 1, "<0.1\u00a0%"),
        (0.5, 0, "50\u00a0%"),
    ],
)
def test_a_share_that_rounds_to_nothing_is_not_nothing(value, digits, shown):
    assert percent(value, digits) == shown


def test_what_is_hidden_is_said_to_be_hidden(found):
    made = json.loads(json.dumps(found))
    made["data"] |= {"n_decisions": None, "n_stays": None, "mean_loss": None, "n_events": None}
    made["exhibits"]["flow"]["stages"][0]["count"] = None
    made["exhibits"]["actions"]["n_logged"][0] = None
    made["exhibits"]["actions"]["logged_share"][0] = None
    text = " ".join(Page(render(made)).root.text.split())
    assert text.count("hidden") >= 4


def test_the_path_marks_the_kept_candidate_and_those_not_trusted(page):
    (section,) = [s for s in page.all("section") if s.attributes["id"] == "path"]
    rows = [" ".join(r.text.split()) for r in section.all("tr") if r.parent.tag == "tbody"]
    assert len(rows) == len(PATH)
    assert rows[1].startswith("translation 0.6 no ")
    assert rows[2].startswith("translation 0.8 (kept) yes ")
    assert rows[3].startswith("always action 1 yes ")
    hollow = [e for e in section.all("circle") if "hollow" in e.attributes["class"]]
    assert len(hollow) == 3  # one candidate, three drawings


def test_dose_maps_are_drawn_for_a_grid_and_bars_otherwise(page):
    assert "dose class" not in page.root.text
    grid = Page(render(document(world="icu-sepsis", full=False)))
    (section,) = [s for s in grid.all("section") if s.attributes["id"] == "actions"]
    assert len(list(section.all("figure"))) == 3
    assert section.text.count("fluid dose class") == 3
    cells = [e for e in section.all("rect") if e.attributes.get("class") == "cell"]
    assert len(cells) == 75
    assert [e for e in section.all("rect") if e.attributes.get("fill") == "url(#thin)"]


def test_a_lone_candidate_is_told_and_not_drawn(found):
    made = json.loads(json.dumps(found))
    made["exhibits"]["paths"] = {"p": made["exhibits"]["paths"]["p"][2:3]}
    (section,) = [s for s in Page(render(made)).all("section") if s.attributes["id"] == "path"]
    assert not list(section.all("svg"))
    assert "One candidate only" in section.text
    assert "translation 0.8 (kept)" in section.text


def test_every_policy_measure_and_formula_is_explained(found):
    made = json.loads(json.dumps(found))
    made["tables"] = [{"title": "t", "note": None, "columns": ["a"], "rows": []}]
    made["methods"][0] |= {"sentence": "Learned so.", "label": "ThatOne"}
    made["methods"][1] |= {"sentence": "Learned otherwise."}
    meanings = {
        term.text: meaning.text
        for words in Page(render(made)).all("dl")
        if words.attributes["class"] == "words"
        for term, meaning in zip(words.all("dt"), words.all("dd"), strict=True)
    }
    assert meanings["p"] == "Learned so. In the tables below: ThatOne."
    assert meanings["q"] == "Learned otherwise."
    assert {"Verdict", "Matching factor", "Effective sample size", "SNIPS", "IPS"} <= set(meanings)
    assert meanings["SNIPS"] == ESTIMATORS["snips"].sentence


def test_every_table_can_be_reached_by_keyboard_and_read_on_a_phone(found):
    """On a phone a row is a card: each cell names its column."""
    for table in Page(render(swapped(found, "plain"))).all("table"):
        around = table.parent.attributes
        assert (around["tabindex"], around["role"]) == ("0", "region")
        assert around["aria-label"]
        assert "cards" in table.attributes["class"]
        for row in (r for r in table.all("tr") if r.parent.tag == "tbody"):
            for cell in row.all("td"):
                told = cell.attributes.get("class") in ("drawn", "hidden-row")
                assert (
                    told or "tripod" in table.attributes["class"] or cell.attributes["data-label"]
                )


@pytest.mark.parametrize(
    ("gain", "gamma", "words"),
    [(None, 1.5, "not known"), (0.1, 1.0, "no gain"), (-0.1, 1.5, "1.50"), (-0.1, None, "over")],
)
def test_what_could_undo_a_gain_is_told_for_every_kind_of_gain(found, gain, gamma, words):
    made = json.loads(json.dumps(found))
    for method in made["methods"]:
        method["gain"] = None if gain is None else {**method["gain"], "difference": gain}
        method["sensitivity"] |= {"gamma_point": gamma, "gamma_interval": gamma}
    page = Page(render(made))
    (section,) = [s for s in page.all("section") if s.attributes["id"] == "sensitivity"]
    cells = [c.text for c in section.all("td") if c.attributes["data-label"] != "Verdict"]
    assert len(cells) == 4
    assert all(words in cell for cell in cells)


def test_settings_are_words_not_code(found):
    made = json.loads(json.dumps(found))
    inner = {"hidden": 64, "translations": [0.1, 0.3]}
    made["exhibits"]["settings"] = {"quick": False, "turned": [], "methods": {"etips": inner}}
    text = " ".join(Page(render(made)).root.text.split())
    assert "quick no" in text
    assert "turned none" in text
    assert "methods: etips hidden 64; translations 0.1, 0.3" in text


def test_the_loss_is_told_in_the_words_of_the_data(found):
    made = json.loads(json.dumps(found))
    made["data"]["provenance"]["loss"] = "1 if dead"
    assert "in the words of the data: 1 if dead." in Page(render(made)).root.text


def test_an_effective_size_that_is_hidden_says_so(found):
    made = json.loads(json.dumps(found))
    made["methods"][1]["diagnostics"]["effective_sample_size"] = None
    assert "under 11" in Page(render(made)).root.text


def test_what_is_not_ours_is_refused_in_one_line():
    with pytest.raises(FileError, match=r"^results: is not a results document of etips: "):
        render({"data": {}, "methods": [], "seconds": 1})
