"""The catalogue of methods: names that nobody else has, and entries that fit their learners."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import etips
import etips.learn
from etips.errors import SettingError
from etips.learn.learners.catalogue import METHODS, find_learner, find_method, require_method
from etips.learn.learners.recipes import kinds_of, make_learner

DOCS = Path(__file__).parents[4] / "docs"
README = DOCS.parent / "README.md"


def test_names_labels_and_python_names_occur_once():
    methods = METHODS.values()
    for names in (
        [method.name for method in methods],
        [method.label for method in methods],
        [method.python_name for method in methods],
    ):
        assert len(set(names)) == len(METHODS)
    assert list(METHODS) == [method.name for method in methods]


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_an_entry_makes_a_learner_of_its_class_with_the_settings_it_searches(method):
    assert type(method.make()) is method.learner
    assert {*method.space, *method.paper_space} <= set(kinds_of(method.learner))
    assert set(method.lends) <= set(method.stages)
    assert method.n_policies(method.make()) >= 1
    assert method.sentence.endswith(".")


def test_python_users_find_every_learner_by_its_name():
    for method in METHODS.values():
        assert getattr(etips, method.python_name) is method.make
        assert getattr(etips.learn, method.python_name) is method.make
        assert find_learner(method.python_name) is method.make


@pytest.mark.parametrize("name", ["Nobody", "nobody", "METHODS"])
def test_what_is_not_there_is_no_attribute(name):
    for package in (etips, etips.learn):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(package, name)


def test_a_method_is_found_by_name_and_any_other_is_refused():
    assert find_method("direct") is METHODS["direct"] is require_method("direct")
    assert find_method("magic") is None
    with pytest.raises(SettingError, match=r"^method: must be one of auto, etips, tips"):
        require_method("magic")


def test_known_propensities_are_those_that_the_learner_reads():
    for method in METHODS.values():
        params = make_learner(method.name, {}).get_params(deep=False)
        known = type(params.get("propensity")).__name__ == "KnownPropensity"
        assert known == method.known_propensities


def test_importing_the_package_brings_neither_torch_nor_pyarrow():
    code = "import sys, etips, etips.learn; print(*sorted({'torch', 'pyarrow'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_the_documents_name_every_method_and_no_other():
    learning = (DOCS / "method" / "learning.md").read_text()
    table = learning.split("## Learners")[1].split("\n\n")[1]
    named = {
        word for row in table.splitlines() for word in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert named == {method.python_name for method in METHODS.values()}
    rows = README.read_text().splitlines()
    (line,) = (row for row in rows if row.startswith("| `etips fit DATA"))
    assert re.findall(r"`([a-z-]+)`", line.split("|")[2]) == list(METHODS)
