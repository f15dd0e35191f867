"""P2: a few people cannot be had by subtraction between any two files, or lines, of one run."""

import json
import re
from itertools import combinations

import pytest
from commands import call, run

from etips.disclosure import are_few
from etips.worlds.mimic3_tables import write_simulated

UNITS = "stays|people|rows|samples|decisions"
COUNTED = re.compile(rf"(?<![\d.,])(\d{{1,3}}(?:,\d{{3}})+|\d+) (?:ICU |logged )?(?:{UNITS})\b")
"""A count of people, or of what people have one of, in a sentence or a drawing."""

NO_COUNTS = re.compile(r"(?:1 to 10|under 11|fewer than 11|worth only [\d,]+) ")

STATED = re.compile(r"(?:decisions|stays|rows|ICU|exclusion|SOFA|onset|adult)[^│\n]*│ +([\d,]+) │")
"""The same in a row of a table on the terminal."""


@pytest.fixture(scope="module", params=[3, 11])
def told(request, tmp_path_factory):
    """What one run says, by place: from raw tables to the page."""
    place = tmp_path_factory.mktemp("run")
    write_simulated(place / "raw", n_stays=60, seed=request.param)
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
        plain = re.sub(
            "(?:1 to 10|under 11|fewer than 11|worth only [\\d,]+) ", "", plain
        )  # no counts
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
