"""The page: whole, honest, self-contained, whatever the names in it."""

import json
import re
import subprocess
import sys
from importlib import resources

import pytest
from report_documents import Element, Page, document, render, section_of

from etips.report import page as page_module
from etips.report.drawings import Cell
from etips.report.page import SECTIONS
from etips.report.section import Section

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


def test_sections_stand_in_the_order_of_the_contract(page):
    ids = [section.attributes["id"] for section in page.all("section")]
    unasked = ("whole-stay", "negative-control", "missing-losses", "folds", "shift", "choice")
    shown = [section for section in SECTIONS if section.name not in unasked]
    assert ids == ["finding", *(section.name for section in shown)]
    contract = [
        *("finding", "policies", "evidence", "path", "actions", "overlap", "balance"),
        *("subgroups", "sensitivity", "flow", "settings", "tripod"),
    ]
    assert [name for name in ids if name in contract] == contract  # others may stand between


def test_a_section_of_its_own_needs_a_module_a_template_and_its_place_in_the_list(
    found, monkeypatch
):
    made = Section("rows", "My rows", "checklist.html", lambda _: {"items": ()})
    empty = Section("nothing", "Nothing", "checklist.html", lambda _: None)
    monkeypatch.setattr(page_module, "SECTIONS", (*SECTIONS, made, empty))
    page = Page(render(found))
    assert section_of(page, "rows").text.strip().startswith("My rows")
    links = [e.attributes["href"] for e in page.all("a")]
    assert "#rows" in links
    assert "#nothing" not in links


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


def body_rows(part):
    return [row for row in part.all("tr") if row.parent.tag == "tbody"]


def test_h2_subgroups_and_abstention_have_a_verdict_in_every_row(page):
    for anchor in ("subgroups", "overlap"):
        rows = body_rows(section_of(page, anchor))
        assert rows
        assert all(re.search("reliable|doubtful|unusable|hidden", row.text) for row in rows)


def test_drawings_speak_and_tables_have_headers_and_can_be_read_on_a_phone(found):
    """On a phone a row is a card: each cell names its column."""
    page = Page(render(swapped(found, "plain")))
    drawings = [
        e for e in page.all("svg", "div") if e.tag == "svg" or "img" in e.attributes.values()
    ]
    assert len(drawings) > 10
    assert all(drawing.attributes["aria-label"] for drawing in drawings)
    for table in page.all("table"):
        around = table.parent.attributes
        assert (around["tabindex"], around["role"]) == ("0", "region")
        assert around["aria-label"]
        looks = table.attributes["class"]
        assert "cards" in looks
        heads = [cell for row in table.all("thead") for cell in row.all("th")]
        assert heads
        assert all(cell.attributes["scope"] == "col" for cell in heads)
        for row in body_rows(table):
            first, *cells = (part for part in row.inside if isinstance(part, Element))
            assert (first.tag, first.attributes["scope"]) == ("th", "row")
            for cell in cells:
                named = cell.attributes.get("class") in ("drawn", "hidden-row")
                assert named or "tripod" in looks or cell.attributes["data-label"]


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
    page = Page(render(bare))
    ids = [section.attributes["id"] for section in page.all("section")]
    assert ids == ["finding", "policies", "evidence", "settings", "tripod"]
    links = {e.attributes["href"] for e in page.all("a")}
    assert links <= {f"#{name}" for name in (*ids, "notice")}
    assert page.root.text.count("Not on this page") > 3
    empty = {**bare, "methods": []}
    assert "hold no policy" in Page(render(empty)).root.text
    only_truth = {**found["methods"][0], "estimates": [], "verdict": None, "diagnostics": None}
    assert "was estimated from the log" in Page(render({**bare, "methods": [only_truth]})).root.text


def test_what_is_hidden_is_said_to_be_hidden(found):
    made = json.loads(json.dumps(found))
    made["data"] |= {"n_decisions": None, "n_stays": None, "mean_loss": None, "n_events": None}
    made["exhibits"]["flow"]["stages"][0]["count"] = None
    made["exhibits"]["actions"]["n_logged"][0] = None
    made["exhibits"]["actions"]["logged_share"][0] = None
    text = " ".join(Page(render(made)).root.text.split())
    assert text.count("hidden") >= 4


CSS = resources.files("etips.report").joinpath("templates/style.css").read_text("utf-8")
TEXT = [
    *(("ink", "paper"), ("ink", "card"), ("ink", "zone"), ("soft", "paper"), ("soft", "card")),
    *(("good", "good-back"), ("warn", "warn-back"), ("bad", "bad-back"), ("link", "paper")),
    *(("part", "part-back"), ("null", "null-back"), ("harm", "harm-back")),
    *(("on", "c0"), ("on", "c1"), ("warn", "paper"), ("truth", "paper"), ("soft", "zone")),
]
GRAPHICS = ("c0", "c1", "c2", "c3", "c4", "c5", "truth")


def palettes():
    light, dark, print_ = (dict(re.findall(r"--([\w-]+): (#\w+)", part)) for part in parts())
    return {"light": light, "dark": dark, "print": print_}


def parts():
    found = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
    assert len(found) == 3
    return found


def luminance(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_letters_reach_a_contrast_of_four_and_a_half_and_marks_of_three(scheme):
    found = palettes()[scheme]
    for front, back in TEXT:
        assert contrast(found[front], found[back]) >= 4.5, (front, back)
    for mark in GRAPHICS:
        assert contrast(found[mark], found["card"]) >= 3, mark


def mix(front, back, opacity):
    pairs = zip(*([c[i : i + 2] for i in (1, 3, 5)] for c in (front, back)), strict=True)
    mixed = (round(opacity * int(a, 16) + (1 - opacity) * int(b, 16)) for a, b in pairs)
    return "#" + "".join(f"{value:02x}" for value in mixed)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("colour", ["c0", "c1"])
def test_numbers_in_a_dose_map_can_be_read_on_every_shade(scheme, colour):
    found = palettes()[scheme]
    shades = {"0": 0.0} | dict(re.findall(r"\.s(\d)::before \{ opacity: ([\d.]+)", CSS))
    assert set(shades) == {str(Cell(step / 100).shade) for step in range(101)}
    for number, opacity in shades.items():
        letters = "on" if number == "8" else "mid" if number in "67" else "ink"
        back = mix(found[colour], found["zone"], float(opacity))
        assert contrast(found[letters], back) >= 4.5, number


def test_paper_gets_tables_and_not_the_cards_of_a_phone():
    """A sheet is as narrow as a phone lying down, so the rule for phones must name screens."""
    rules = re.findall(r"@media ([^{]*max-width[^{]*)\{", CSS)
    assert rules
    assert all(rule.startswith("screen ") for rule in rules)
