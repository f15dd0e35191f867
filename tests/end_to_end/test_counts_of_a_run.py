"""P2: a few people cannot be had by subtraction between any two files, or lines, of one run."""

import json
import re
from itertools import combinations

import numpy as np
import pytest
from commands import call, run

from etips.disclosure import are_few
from etips.worlds.raw_tables import MIMIC3_SHAPE

UNITS = "stays|people|patients|rows|samples|decisions|steps|first steps"
COUNTED = re.compile(rf"(?<![\d.,])(\d{{1,3}}(?:,\d{{3}})+|\d+) (?:ICU |logged )?(?:{UNITS})\b")
"""A count of people, or of what people have one of, in a sentence or a drawing."""

NO_COUNTS = re.compile(r"(?:1 to 10|under 11|fewer than 11|(?:about|worth|worth only) [\d,]+) ")

STATED = re.compile(r"(?:decisions|stays|rows|ICU|exclusion|SOFA|onset|adult)[^│\n]*│ +([\d,]+) │")
"""The same in a row of a table on the terminal."""


@pytest.fixture(scope="module", params=[3, 11])
def told(request, tmp_path_factory):
    """What one run says, by place: from raw tables to the page."""
    place = tmp_path_factory.mktemp("run")
    MIMIC3_SHAPE.write_simulated(place / "raw", n_stays=60, seed=request.param)
    told = {"cohort": run("cohort", place / "raw", "--out", place / "c")}
    told["funnel.svg"] = (place / "c" / "funnel.svg").read_text()
    told["validate"] = run("validate", place / "c")
    run("fit", place / "c", "--method", "most-frequent", "--out", place / "r")
    seen = call("evaluate", place / "r", place / "c", "--allow-seen")
    assert seen.exit_code == 0, seen.output
    told["evaluate"] = seen.stdout
    told["report"] = run("report", place / "r")
    told["report.html"] = (place / "r" / "report.html").read_text()
    told["results.json"] = (place / "r" / "results.json").read_text()
    return told


def one_row_a_patient(rng):
    """240 patients, of whom three have no outcome."""
    rows = [["patient", "age", "severity", "drug", "died"]]
    for patient in range(240):
        drug = rng.choice(["none", "aspirin", "heparin"])
        died = "" if patient in (3, 77, 120) else int(rng.random() < 0.4)
        rows.append([patient, int(rng.integers(30, 90)), round(rng.random(), 3), drug, died])
    return rows, ("--action", "drug", "--loss", "died", "--drop", "patient")


def ward_log(rng):
    """136 stays of three steps, of which one has no action at first and one has none at all."""
    rows = [["stay", "hour", "map", "drug", "harm"]]
    for stay in range(136):
        for hour in range(3):
            silent = (stay, hour) == (5, 0) or (stay == 9 and hour > 0)
            drug = "" if silent else int(rng.integers(0, 2))
            harm = "" if silent else int(rng.random() < 0.4)
            rows.append([stay, hour, round(60 + 20 * rng.random(), 1), drug, harm])
    return rows, ("--stay", "stay", "--step", "hour", "--action", "drug", "--loss", "harm")


@pytest.fixture(scope="module", params=[one_row_a_patient, ward_log])
def told_of_a_table(request, tmp_path_factory):
    """What one run on a table of one's own says, by place."""
    place = tmp_path_factory.mktemp("table")
    rows, columns = request.param(np.random.default_rng(0))
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (place / "log.csv").write_text(f"{text}\n")
    log, kept = place / "log.csv", place / "r"
    told = {}
    for name, arguments in {
        "check": ("check", log, *columns, "--out", place / "table.toml"),
        "fit": ("fit", log, *columns, "--method", "most-frequent", "--out", kept),
        "evaluate": ("evaluate", kept, log, *columns, "--allow-seen"),
        "report": ("report", kept),
    }.items():
        result = call(*arguments)
        assert result.exit_code == 0, result.output
        told[name] = result.stdout + result.stderr
    told["report.html"] = (kept / "report.html").read_text()
    told["results.json"] = (kept / "results.json").read_text()
    return told


def test_p2_no_count_of_a_run_on_a_table_is_few_nor_differs_by_few(told_of_a_table):
    found = counts(told_of_a_table)
    assert {"evaluate", "report.html", "results.json"} <= {place for place, _ in found}
    assert [own for own in found if are_few(own[1])] == []
    pairs = combinations(found, 2)
    assert [pair for pair in pairs if are_few(abs(pair[0][1] - pair[1][1]))] == []


def counts(told):
    """Every count of people, with where it stands."""
    found = []
    for place, text in told.items():
        if place == "results.json":
            document = json.loads(text)
            sizes = [document["data"][name] for name in ("n_stays", "n_decisions", "n_steps")]
            flow = document["exhibits"]["flow"]
            sizes += [flow["n_steps"], flow["n_decisions"], *(s["count"] for s in flow["stages"])]
            found += [(place, size) for size in sizes if size is not None]
            continue
        plain = re.sub("<[^>]+>", " ", text) if place.endswith("html") else text
        plain = NO_COUNTS.sub("", plain)
        words = [*COUNTED.findall(plain), *STATED.findall(plain)]
        if place == "report.html":
            section = text.partition('id="flow"')[2].partition("</section>")[0]
            words += re.findall(r"<b>([\d,]+)</b>", section)
        found += [(place, int(word.replace(",", ""))) for word in words]
    return found


def test_p2_no_count_of_a_run_is_few(told):
    found = counts(told)
    assert {"cohort", "funnel.svg", "report.html", "results.json"} <= {place for place, _ in found}
    assert [own for own in found if are_few(own[1])] == []


def test_p2_no_two_counts_of_a_run_differ_by_few(told):
    pairs = combinations(counts(told), 2)
    assert [pair for pair in pairs if are_few(abs(pair[0][1] - pair[1][1]))] == []
