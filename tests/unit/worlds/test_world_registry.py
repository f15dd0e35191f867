"""The list of worlds: every one can be simulated as it says, and is in the documents."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from etips.worlds.world_registry import WORLDS, Simulation, World

DOCS = Path(__file__).parents[3] / "docs" / "worlds.md"


@pytest.mark.parametrize("world", [w for w in WORLDS.values() if not w.has_labels], ids=str)
def test_a_world_gives_the_stays_that_were_asked_for_and_their_truth(world):
    for lag in world.lags:
        data = world.simulate(Simulation(12, seed=3, lag=lag))
        assert (data.n_stays, data.lag) == (12, lag)
        assert data.truth is not None
        assert data.schema.provenance["world"] == world.name
        again = world.simulate(Simulation(12, seed=3, lag=lag))
        assert (again.logged_action == data.logged_action).all()


@pytest.mark.parametrize("world", [w for w in WORLDS.values() if w.has_labels], ids=str)
def test_a_world_with_labels_gives_them_as_actions(world):
    data = world.labelled(9, seed=3)
    assert data.n_stays == 9
    assert (data.logged_loss == 0).all()
    assert data.schema.provenance["world"] == world.name


def test_a_world_is_known_by_its_name():
    assert all(name == world.name for name, world in WORLDS.items())


def test_a_new_world_is_its_function_and_an_entry(monkeypatch):
    monkeypatch.setitem(WORLDS, "ward", World("ward", "a ward", f"{__name__}:simulate_ward"))
    assert WORLDS["ward"].simulate(Simulation(4, seed=1)).n_stays == 4


def simulate_ward(wanted):
    return WORLDS["clinic"].simulate(wanted)


def test_listing_the_worlds_brings_no_torch():
    code = "import sys, etips.worlds.world_registry; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_documents_name_every_world_and_no_other():
    table = DOCS.read_text().split("| world |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `([a-z-]+)` ", table, re.MULTILINE)) == set(WORLDS)
