"""Where little can be installed: learning and studies need torch, scikit-learn, safetensors."""

import os
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

NEEDED = {"torch", "numpy", "safetensors", "scipy", "scikit-learn", "joblib"}
CALLED = {"duckdb": "duckdb", "ibis-framework": "ibis", "scikit-learn": "sklearn"}

SCRIPT = """
import sys
for name in {absent}:
    sys.modules[name] = None
{work}
print("done")
"""

LEARN = """
import numpy as np
from etips.data import from_arrays
from etips.learn import EtIPS
from etips.models import GRU
rng = np.random.default_rng(0)
log = from_arrays(rng.normal(size=(60, 2)), rng.integers(0, 2, 60), rng.random(60))
EtIPS(translations=[0.5], encoder=GRU(4)).fit(log)
"""

STUDY = """
import tempfile
from pathlib import Path
from etips.studies.experiment import read_experiment
from etips.studies.study import run_study
document = {
    "title": "A ward", "table": "table2", "world": "clinic", "n": 60, "lag": 0, "folds": 2,
    "seed": 0, "methods": ["random", "eips"],
    "settings": {"hidden": 4, "policy": {"epochs": 1}},
    "evaluation": {"settings": {"hidden": 4, "epochs": 1}},
    "presets": {"etips": {"lead": "Ours."}},
}
experiment = read_experiment(document, name="ward")
with tempfile.TemporaryDirectory() as folder:
    found = run_study(experiment, Path(folder), device="cpu")
assert found.tables
"""


def absent_packages():
    """Modules of every package that etips may use, but those that are needed for this."""
    names = {Requirement(line).name for line in requires("etips")} - NEEDED
    return sorted(CALLED.get(name, name.replace("-", "_")) for name in names)


@pytest.mark.parametrize("work", [LEARN, STUDY], ids=["a learner", "a study"])
def test_torch_numpy_and_safetensors_are_enough_for(work):
    absent = absent_packages()
    assert {"pyarrow", "typer"} <= set(absent)
    script = SCRIPT.format(absent=absent, work=work)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr[-2000:]


GPU = """
import pytest
paths = ["tests/unit/models", "tests/unit/learn/training", "tests/unit/runs/test_tasks.py"]
assert pytest.main(["-q", "-m", "gpu", "-p", "no:cacheprovider", *paths]) == 0
"""


def test_with_pytest_and_hypothesis_the_tests_that_need_a_gpu_can_be_asked_for():
    """Here they skip; what matters is that nothing they import is missing."""
    absent = sorted(set(absent_packages()) - {"pytest", "hypothesis"})
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(absent=absent, work=GPU)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert re.search(r"[1-9]\d (skipped|passed), \d+ deselected", done.stdout)
