"""A Ray cluster finds what this process finds. Needs ray: `make test-ray`."""

import json
import os
import secrets
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from small_worlds import CLINIC

from etips.studies.space import read_space
from etips.studies.tuning import Search, tune

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed"),
]

HERE = Path(__file__).parent
SPACE = {
    "hidden": 4,
    "epochs": 1,
    "n_folds": 2,
    "translations": [0.3, 0.7],
    "learning_rate": {"low": 1e-3, "high": 1e-1, "log": True},
}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The study of `ray_study.py`: its folder, and what it found."""
    base = tmp_path_factory.mktemp("ray")
    tests = os.pathsep.join([str(HERE), str(HERE.parents[1])])
    # A token of its own, lest Ray leave one in somebody's home; and no cluster of somebody else's.
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    own["RAY_ADDRESS"] = "127.0.0.1:1"
    result = subprocess.run(
        [sys.executable, str(HERE / "ray_study.py"), str(base), json.dumps(SPACE)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": tests, "OMP_NUM_THREADS": "1", **own},
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return base, json.loads(result.stdout.splitlines()[-1])


def test_every_task_is_done_elsewhere_and_its_files_come_back(study):
    base, found = study
    assert [found["mixed"][f"add-{i}"]["sum"] for i in range(3)] == [10, 11, 12]
    assert (base / "mixed" / "add-2" / "more" / "numbers.txt").read_text() == "[2, 10]"
    assert found["told"][-1] == 1.0


def test_a_lost_worker_has_its_task_done_again(study):
    base, found = study
    assert found["mixed"]["mortal"] == {"deaths": 1}
    assert (base / "deaths").read_text() == "1"


def test_a_task_that_always_loses_its_worker_is_given_up_by_name(study):
    _, found = study
    assert found["lost"]["kind"] == "LostTaskError"
    assert found["lost"]["line"].startswith("task one: lost its worker 3 times")
    assert found["lost"]["over"]


def test_a_refusal_comes_back_as_the_same_line(study):
    _, found = study
    line = "dose: must not be negative; 1 of 9 rows fail, first at row 3. Mend it."
    assert found["refused"]["line"] == line


def test_p1_a_bug_comes_back_without_a_value(study):
    """P1: as from a process of this machine."""
    _, found = study
    assert found["broken"]["kind"] == "BrokenTaskError"
    assert "KeyError" in found["broken"]["line"]
    assert "Jane Doe" not in found["broken"]["line"]


def test_workers_with_other_versions_are_refused(study):
    _, found = study
    assert found["version"]["line"].startswith("cluster: must have etips 0 on every machine")


def test_an_address_where_nobody_answers_is_refused(study):
    _, found = study
    line = "cluster: no Ray cluster answers at that address. Start one with: ray start --head."
    assert found["nobody"]["line"] == line


def test_a_search_on_the_cluster_ends_with_the_bytes_of_one_here(study, tmp_path):
    base, _ = study
    search = Search("etips", read_space(SPACE, "etips"), n_trials=3, batch=2, device="cpu")
    tune(CLINIC.log(60, seed=0), tmp_path / "here", search)
    for name in ("best.toml", "trials.json"):
        there = (base / "tuned" / name).read_bytes()
        assert there == (tmp_path / "here" / name).read_bytes()
