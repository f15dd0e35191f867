"""A build that was killed or interrupted goes on where it had got to and gives the same bytes."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from etips.worlds.raw_tables import MIMIC3_SHAPE, MIMIC4_SHAPE, RawShape

SCRIPT = """
import os, signal, sys
from etips.cli import cohort as command
from etips.cli.main import main
from etips.cohorts.mimic import mimic3, mimic4
from etips.cohorts.engines import sources as duckdb_source
from etips.cohorts.sepsis3 import rows as blocks

place, number = sys.argv[1], int(sys.argv[2])
calls = {"store": 0, "rows": 0, "save": 0}

def counting(name, inner):
    def call(*arguments, **options):
        if calls[name] == number and name == place:
            os.kill(os.getpid(), int(os.environ["ETIPS_TEST_SIGNAL"]))
        calls[name] += 1
        return inner(*arguments, **options)
    return call

connect = duckdb_source.ibis.duckdb.connect
def connected(*a, **k):
    backend = connect(*a, **k)
    backend.create_table = counting("store", backend.create_table)
    return backend
duckdb_source.ibis.duckdb.connect = connected
blocks.step_rows = counting("rows", blocks.step_rows)
command.save_trajectories = counting("save", command.save_trajectories)
for profiles in (mimic3.PROFILES, mimic4.PROFILES):
    for name, profile in profiles.items():
        profiles[name] = profile.changed(stays_per_block=5)
sys.argv = ["etips", "cohort", *sys.argv[3:], "--json"]
try:
    main()
finally:
    print(calls, file=sys.stderr)
"""


@dataclass(frozen=True)
class Hospital:
    """Raw tables, and how they are built from.

    Attributes:
        shape: Of its database.
        raw: Folder of 40 simulated stays.
        options: Of the command.
        n_stored: How many results are kept on disk.
    """

    shape: RawShape
    raw: Path
    options: tuple[str, ...]
    n_stored: int


SHAPES = {
    "mimic3": (MIMIC3_SHAPE, (), 5),
    "mimic4": (MIMIC4_SHAPE, ("--onset", "mimic-code"), 9),  # whose own rows are kept beside
}


@pytest.fixture(scope="module", params=SHAPES)
def hospital(request, tmp_path_factory):
    shape, options, n_stored = SHAPES[request.param]
    raw = tmp_path_factory.mktemp(request.param) / "raw"
    shape.write_simulated(raw, n_stays=40, seed=3)
    return Hospital(shape, raw, options, n_stored)


def build(hospital, out, *, raw=None, kill=("never", 0), by=signal.SIGKILL):
    """Run until a call of a place, where it is killed; "never" runs to the end."""
    place, number = kill
    words = (place, number, raw or hospital.raw, "--out", out, *hospital.options)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ETIPS_TEST_SIGNAL": str(int(by))}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, words)],
        capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


def calls_of(done):
    """How often a build that succeeded stored, made rows and saved."""
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1].replace("'", '"'))


def bytes_of(out):
    return {file.name: file.read_bytes() for file in out.iterdir()}


@pytest.fixture(scope="module")
def uninterrupted(hospital, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole") / "c"
    assert calls_of(build(hospital, out))["store"] == hospital.n_stored
    return bytes_of(out)


@pytest.mark.parametrize(
    ("kill", "redone"),
    [(("store", 2), {"store": -2}), (("rows", 4), {"store": 0}),
     (("save", 0), {"store": 0, "rows": 0})],
)  # fmt: skip
def test_a_killed_build_goes_on_where_it_had_got_to(
    hospital, tmp_path, uninterrupted, kill, redone
):
    out = tmp_path / "c"
    assert build(hospital, out, kill=kill).returncode == -signal.SIGKILL
    assert [entry.name for entry in tmp_path.iterdir()] == [".c.work"]
    calls = calls_of(build(hospital, out))
    stored = {name: n if n >= 0 else hospital.n_stored + n for name, n in redone.items()}
    assert {name: calls[name] for name in redone} == stored
    assert bytes_of(out) == uninterrupted
    assert [entry.name for entry in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize("hospital", ["mimic3"], indirect=True)
def test_an_interrupted_build_says_so_and_goes_on_where_it_had_got_to(
    hospital, tmp_path, uninterrupted
):
    out = tmp_path / "c"
    stopped = build(hospital, out, kill=("rows", 2), by=signal.SIGINT)
    assert stopped.returncode == 130
    assert "etips cohort: interrupted" in stopped.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == [".c.work"]
    assert calls_of(build(hospital, out))["store"] == 0
    assert bytes_of(out) == uninterrupted


def test_a_source_that_changed_after_the_kill_is_read_anew(hospital, tmp_path):
    raw = shutil.copytree(hospital.raw, tmp_path / "raw")
    out = tmp_path / "cohorts" / "c"
    out.parent.mkdir()
    assert build(hospital, out, raw=raw, kill=("save", 0)).returncode == -signal.SIGKILL
    path = raw / f"{hospital.shape.files['outputevents']}.csv.gz"
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(text.replace(b",226559,", b",226560,")))
    assert calls_of(build(hospital, out, raw=raw))["store"] == hospital.n_stored
    audit = json.loads((out / "audit.json").read_bytes())
    assert 226559 not in {item["item"] for item in audit["units"]}
