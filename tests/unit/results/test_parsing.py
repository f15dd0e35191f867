"""Results documents: ours pass, others are refused in one line that names the field."""

import json
from dataclasses import fields

import pytest

from etips.errors import FileError
from etips.results import parsing
from etips.results.exhibits import Exhibits
from etips.results.parsing import from_json, json_schema, parse_results, read_results
from etips.results.records import MethodResult
from etips.results.results import Results
from etips.results.study_result import Chart, StudyResult

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


def test_a_document_of_the_contract_passes_and_what_came_later_is_none():
    results = parse_results(GOOD)
    assert type(results) is Results
    assert results.exhibits is None
    assert results.methods[0].gain is None
    assert results.methods[0].estimates[0].risk == 0.5


def test_a_document_with_tables_or_charts_is_one_of_a_study():
    assert type(parse_results({**GOOD, "title": "A study"})) is StudyResult


def test_a_document_is_read_back_as_it_was_written():
    results = parse_results({**GOOD, "title": "A study"})
    assert parse_results(results.to_json()) == results


def test_h1_the_schema_is_made_from_the_dataclasses_and_asks_for_all_a_report_must_hold():
    """H1: the list of the goal, field by field; none of them optional but for super learners."""
    schema = json_schema()
    assert set(schema["required"]) == {"data", "methods", "seconds"}
    exhibits, method = (schema["$defs"][kind.__name__] for kind in (Exhibits, MethodResult))
    assert set(exhibits["required"]) == {f.name for f in fields(Exhibits)} - {"notice", "choices"}
    assert {"verdict", "estimates", "diagnostics"} <= set(method["required"])


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
        ([], "the whole must be "),
        (None, "the whole must be "),
        ({}, "the whole lacks data"),
        (changed("methods", drop=True), "the whole lacks methods"),
        (changed("methods", value={}), "methods must be a valid array"),
        (changed("methods", 0, value=3), r"methods\[0\] must be "),
        (changed("methods", 0, "name", value=3), r"methods\[0\].name must be a valid string"),
        (changed("methods", 0, "verdict", value="fine"), r"methods\[0\].verdict must be 'rel"),
        (changed("methods", 0, "verdict", value=None), "has estimates but no verdict"),
        (changed("methods", 0, "truth", value=True), r"methods\[0\].truth must be a valid number"),
        (changed("methods", 0, "truth", value=1e301), "truth is too large"),
        (changed("methods", 0, "truth", value=10**400), "truth is too large"),
        (changed("methods", 0, "CANARY", value=1), r"methods\[0\] has a field that is not known"),
        (changed("methods", 0, "estimates", 0, "low", drop=True), "lacks low"),
        (changed("data", "lag", value="1"), "data.lag must be a valid integer"),
        (changed("seconds", value=float("nan")), "seconds is too large"),
        (changed("exhibits", value={}), "exhibits lacks"),
        (changed("title", value=3), "title must be a valid string"),
        (changed("tables", value=[{"title": "", "note": "", "columns": ["a"], "rows": [[]]}]),
         "rows that do not fit"),
    ],
)  # fmt: skip
def test_what_is_not_ours_is_refused_by_the_field(document, words):
    with pytest.raises(
        FileError, match=rf"^results: is not a results document of etips: .*{words}"
    ):
        parse_results(document)


@pytest.mark.parametrize(
    "document",
    [
        changed("methods", 0, "verdict", value="CANARY"),
        changed("methods", 0, "CANARY", value="CANARY"),
        changed("methods", 0, "notes", value={"CANARY": ["CANARY"]}),
        changed("CANARY", value="CANARY"),
    ],
)
def test_a_refusal_never_repeats_a_value_nor_a_name_that_is_not_ours(document):
    with pytest.raises(FileError) as refused:
        parse_results(document)
    assert "CANARY" not in str(refused.value)
    assert refused.value.__cause__ is None


def test_columns_of_unequal_length_are_refused():
    series = {"name": "a", "x": [1], "y": [1.0, 2.0], "error": None}
    chart = {"name": "", "kind": "bars", "title": "", "caption": "", "x": "", "y": ""}
    with pytest.raises(FileError, match=r"series\[0\] must have columns of equal length"):
        from_json(Chart, {**chart, "series": [series]})


def test_a_document_that_nests_without_end_is_refused():
    nested = "[" * 800 + "]" * 800
    document = {**GOOD, "data": {**GOOD["data"], "provenance": {"a": json.loads(nested)}}}
    with pytest.raises(FileError, match="results document"):
        parse_results({**document, "seconds": "x"})


def test_a_file_or_its_folder_is_read(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(GOOD))
    assert read_results(tmp_path) == read_results(tmp_path / "results.json") == parse_results(GOOD)


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
    monkeypatch.setattr(parsing, "_LIMIT", 10)
    with pytest.raises(FileError, match="too large"):
        read_results(tmp_path)
