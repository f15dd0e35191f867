"""Results documents: ours pass, others are refused in one line that names the field."""

import json
from pathlib import Path

import pytest

import etips.results.documents as module
from etips.errors import FileError
from etips.results.documents import check_results, read_results

METHOD = {
    "name": "p",
    "estimates": [{"estimator": "snips", "risk": 0.5, "std_error": 0.1, "low": 0.3, "high": 0.7}],
    "diagnostics": {
        "matching_factor": 1.0,
        "effective_sample_size": 20.0,
        "n_matched": None,
        "clipped_share": 0.0,
        "max_weight": 3.0,
    },
    "verdict": "doubtful",
    "reasons": ["why"],
    "truth": None,
}
GOOD = {
    "data": {"n_stays": 30, "n_decisions": 60, "n_actions": 3, "lag": 1},
    "methods": [METHOD],
    "seconds": 0.5,
}
SCHEMA = json.loads(Path(module.__file__).with_name("results.schema.json").read_text())


def test_a_document_of_the_contract_passes_and_what_came_later_is_null():
    found = check_results(GOOD)
    assert found["exhibits"] is None
    assert found["methods"][0]["gain"] is None
    with pytest.raises(FileError, match="lacks "):
        check_results(GOOD, complete=True)


def test_h1_no_field_of_the_schema_is_optional():
    """H1: but for what a study adds to the page, and what the contract leaves open of the data."""
    free = {"title", "lead", "tables", "charts"}
    loose = {"n_steps", "n_events", "mean_loss", "actions", "provenance"}

    def walk(node, at):
        if isinstance(node, dict):
            if node.get("type") == "object" and "properties" in node:
                optional = set(node["properties"]) - set(node["required"])
                assert optional == (free if at == () else loose if at[-1:] == ("data",) else set())
            for key, inner in node.items():
                walk(inner, (*at, key))
        elif isinstance(node, list):
            for inner in node:
                walk(inner, at)

    walk({k: v for k, v in SCHEMA.items() if k != "$defs"}, ())
    for name, part in SCHEMA["$defs"].items():
        walk(part, (name,))


def test_h1_the_schema_names_all_that_a_report_must_hold():
    """H1: the list of the goal, field by field."""
    wanted = {
        *("actions", "calibration", "weights", "balance", "subgroups", "flow", "missingness"),
        *("policies", "versions", "seeds", "fingerprint", "notice", "settings", "paths"),
    }
    assert wanted <= set(SCHEMA["$defs"]["exhibits"]["required"])
    assert {"verdict", "estimates", "diagnostics"} <= set(SCHEMA["$defs"]["method"]["required"])


def changed(*place, value=None, drop=False):
    made = json.loads(json.dumps(GOOD))
    node = made
    for key in place[:-1]:
        node = node[key]
    if drop:
        del node[place[-1]]
    else:
        node[place[-1]] = value
    return made


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "the whole must be object"),
        (None, "the whole must be object"),
        ({}, "the whole lacks data"),
        (changed("methods", drop=True), "methods must be array"),
        (changed("methods", value={}), "methods must be array"),
        (changed("methods", 0, value=3), r"methods\[0\] must be object"),
        (changed("methods", 0, "name", value=3), r"methods\[0\].name must be string"),
        (changed("methods", 0, "verdict", value="fine"), r"methods\[0\].verdict has a value"),
        (changed("methods", 0, "verdict", value=None), "has estimates but no verdict"),
        (changed("methods", 0, "truth", value=True), r"methods\[0\].truth must be number or null"),
        (changed("methods", 0, "truth", value=1e301), "truth must be number"),
        (changed("methods", 0, "truth", value=10**400), "truth must be number"),
        (changed("methods", 0, "estimates", 0, "low", drop=True), "lacks low"),
        (changed("data", "lag", value="1"), "data.lag must be integer"),
        (changed("seconds", value=float("nan")), "seconds must be number"),
        (changed("exhibits", value={}), "exhibits lacks"),
        (changed("title", value=3), "title must be string"),
        (changed("tables", value=[{"title": "", "note": "", "columns": ["a"], "rows": [[]]}]),
         "rows that do not fit"),
    ],
)  # fmt: skip
def test_what_is_not_ours_is_refused_by_the_field(document, words):
    with pytest.raises(
        FileError, match=rf"^results: is not a results document of etips: .*{words}"
    ):
        check_results(document)


def test_a_refusal_never_repeats_a_value():
    with pytest.raises(FileError) as refused:
        check_results(changed("methods", 0, "verdict", value="CANARY"))
    assert "CANARY" not in str(refused.value)


def test_columns_of_unequal_length_are_refused():
    series = {"name": "a", "x": [1], "y": [1.0, 2.0], "error": None}
    chart = {"name": "", "kind": "bars", "title": "", "caption": "", "x": "", "y": ""}
    with pytest.raises(FileError, match="unequal length"):
        check_results(changed("charts", value=[{**chart, "series": [series]}]))


def test_a_file_or_its_folder_is_read(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(GOOD))
    assert read_results(tmp_path) == read_results(tmp_path / "results.json") == check_results(GOOD)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not valid JSON"),
        ("{", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"data": NaN}', "is not valid JSON"),
        ("\xff", "is not valid JSON"),
        ("{}", "is not a results document"),
        (None, "is missing. Run etips evaluate first."),
    ],
)
def test_a_file_that_is_not_ours_is_refused_in_one_line(content, words, tmp_path):
    if content is not None:
        (tmp_path / "results.json").write_text(content, encoding="latin-1")
    with pytest.raises(FileError) as refused:
        read_results(tmp_path)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_beyond_any_results_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "results.json").write_text(json.dumps(GOOD))
    monkeypatch.setattr(module, "_LIMIT", 10)
    with pytest.raises(FileError, match="too large"):
        read_results(tmp_path)
