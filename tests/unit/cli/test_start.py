"""The first moments of a command: what it imports, Ctrl-C, and pyarrow without pandas."""

import json
import signal
import subprocess
import sys

import pytest

from etips.cli.arguments import NAMES, start_arrow
from etips.data.tables.reading import read_table
from etips.learn import MostFrequent
from etips.learn.learners.catalogue import METHODS
from etips.policies.policy_files import save_policy

IMPORTED = """
import json, sys
from etips.cli.main import main
sys.argv = ["etips", *sys.argv[1:]]
try:
    main()
except SystemExit as left:
    code = left.code
print(json.dumps({"code": code, "modules": sorted(sys.modules)}))
"""
HEAVY = ("torch", "matplotlib", "ibis", "duckdb", "sklearn", "polars", "jinja2", "scipy", "pandas")
JUDGING = {"pyarrow", "scipy"}  # intervals are made of SciPy's distributions


def call(*arguments):
    """A command in a process of its own: its exit code, what it imported, and what it said."""
    command = [sys.executable, "-c", IMPORTED, *(str(a) for a in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    last = json.loads(done.stdout.splitlines()[-1])
    return last["code"], {*last["modules"]} & {*HEAVY, "pyarrow"}, done.stderr


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """A table of which one column mixes numbers and text."""
    place = tmp_path_factory.mktemp("tables") / "bad.csv"
    rows = [f"{n // 3},{n % 3},{n % 2},{n % 2},{'x' if n == 7 else n}" for n in range(30)]
    place.write_text("\n".join(["stay,step,drug,died,lactate", *rows]))
    return place


ROLES = {"stay": "stay", "step": "step", "action": "drug", "loss": "died"}
COLUMNS = ("--stay", "stay", "--step", "step", "--action", "drug", "--loss", "died")


def test_the_help_page_imports_nothing_heavy_and_no_command():
    code, heavy, _ = call("--help")
    assert (code, heavy) == (0, set())
    assert call("--version")[:2] == (0, set())


@pytest.mark.parametrize("command", ["fit", "tune"])
def test_the_help_of_a_command_that_trains_does_without_torch(command):
    assert call(command, "--help")[:2] == (0, {"pyarrow"})


@pytest.mark.parametrize("command", ["fit", "tune"])
def test_a_bad_table_is_refused_without_torch(command, bad, tmp_path):
    code, heavy, said = call(command, bad, *COLUMNS, "--out", tmp_path / "run")
    assert code == 2
    assert "column lactate" in said
    assert heavy == {"pyarrow"}
    assert not (tmp_path / "run").exists()


def test_a_table_that_is_not_there_and_a_place_that_is_taken_are_refused_without_torch(
    bad, tmp_path
):
    for data, out in ((bad.parent / "none.csv", tmp_path / "run"), (bad, bad.parent)):
        code, heavy, _ = call("fit", data, *COLUMNS, "--out", out)
        assert code == 2
        assert "torch" not in heavy


def test_a_bad_table_to_recommend_for_is_refused_without_torch(bad, tmp_path):
    learner = MostFrequent().fit(read_table(bad, **ROLES, drop=["lactate"]))
    save_policy(learner.policy_, tmp_path / "run")
    text = bad.read_text().replace("stay,step", "bed,step")
    (tmp_path / "other.csv").write_text(text)
    given = ("recommend", tmp_path / "run", tmp_path / "other.csv", "--out", tmp_path / "a.csv")
    code, heavy, said = call(*given)
    assert code == 2
    assert "stay" in said
    assert "torch" not in heavy


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_a_bad_table_to_judge_a_run_on_is_refused_without_torch(command, bad, tmp_path):
    learner = MostFrequent().fit(read_table(bad, **ROLES, drop=["lactate"]))
    save_policy(learner.policy_, tmp_path / "run")
    (tmp_path / "other.csv").write_text(bad.read_text().replace("stay,step", "bed,step"))
    code, heavy, said = call(command, tmp_path / "run", tmp_path / "other.csv")
    assert (code, heavy) == (2, JUDGING)
    assert "stay" in said
    code, heavy, said = call(command, tmp_path / "none", bad)
    assert (code, heavy) == (2, JUDGING)
    assert "none" in said


def test_the_methods_of_the_help_pages_are_those_of_the_catalogue():
    assert list(NAMES) == list(METHODS)


INTERRUPTED = """
import os, signal, sys
{before}
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["etips", "--version"]
from etips.cli.entry import main
main()
"""


def run(before=""):
    code = INTERRUPTED.format(before=before)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_ctrl_c_while_it_is_imported_ends_it_without_a_word():
    done = run()
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_one_that_does_not_listen_to_ctrl_c_goes_on():
    done = run("signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert done.returncode == 0
    assert done.stdout.startswith("etips ")


@pytest.mark.parametrize("handler", ["default_int_handler", "SIG_IGN"])
def test_a_command_hears_ctrl_c_as_it_would_have_before(handler):
    code = (
        f"import signal; signal.signal(signal.SIGINT, signal.{handler})\n"
        "from etips.cli import entry\n"
        f"entry.run_command = lambda: print(signal.getsignal(signal.SIGINT) is signal.{handler})\n"
        "entry.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n"


SCRIPT = """
import sys
import numpy as np, pyarrow as pa, pyarrow.compute as pc
from etips.cli.arguments import start_arrow
before = list(sys.meta_path)
start_arrow()
assert sys.meta_path == before
pc.fill_null(pa.array([1, None]), pa.scalar(0)).to_numpy(zero_copy_only=False)
pa.array(np.array([1.0, np.nan]), from_pandas=True)
assert "pandas" not in sys.modules
import pandas
assert pa.table(pandas.DataFrame({"a": [1]})).to_pandas()["a"].tolist() == [1]
"""


def test_pandas_is_imported_by_whoever_asks_for_it_alone():
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


def test_where_it_is_imported_already_nothing_happens():
    before = list(sys.meta_path)
    start_arrow()
    assert sys.meta_path == before
