"""The peers: each has its module, and says whether its package is here."""

from importlib.util import find_spec
from pathlib import Path

import pytest

import etips.bench.peers
from etips.bench.peers.peer_registry import PEERS

FOLDER = Path(etips.bench.peers.__file__).parent


@pytest.mark.parametrize("name", PEERS)
def test_an_entry_names_a_function_of_its_module(name):
    module, _, function = PEERS[name].home.partition(":")
    assert f"def {function}(" in (FOLDER / f"{module}.py").read_text()
    assert PEERS[name].installed == (find_spec(PEERS[name].package) is not None)
    assert bool(PEERS[name].version) <= PEERS[name].installed or PEERS[name].installed


def test_the_document_names_every_peer():
    text = (FOLDER.parents[2] / "docs" / "bench" / "index.md").read_text()
    assert [name for name in PEERS if f"`{name}`" not in text] == []
