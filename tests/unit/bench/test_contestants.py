"""Who takes part: the catalogue by itself, peers where they are."""

from importlib.util import find_spec
from pathlib import Path

import pytest

import etips.bench.peers
from etips.bench.contestants import PEERS, all_contestants, choose_contestants
from etips.errors import SettingError
from etips.learn.learners.catalogue import METHODS

FOLDER = Path(etips.bench.peers.__file__).parent


def test_every_method_of_the_catalogue_takes_part_by_itself():
    assert [own.name for own in choose_contestants(None, peers=False)] == list(METHODS)
    assert set(all_contestants()) == {*METHODS, *PEERS}
    assert set(METHODS).isdisjoint(PEERS)


def test_who_is_told_the_propensities_is_not_ranked_with_the_others():
    groups = {name: own.group for name, own in all_contestants().items()}
    assert (groups["etips"], groups["owl"]) == ("ours", "ours")
    assert (groups["tips"], groups["ips"]) == ("told", "told")
    assert {groups[name] for name in ("random", "most-frequent", "predictive")} == {"simple"}
    assert {groups[name] for name in PEERS} == {"peer"}


def test_unknown_names_and_peers_that_are_not_there_are_refused():
    with pytest.raises(SettingError, match="--methods: must be some of"):
        choose_contestants(["etips", "magic"], peers=False)
    absent = {name for name, own in PEERS.items() if not own.installed}
    for name in absent:
        with pytest.raises(SettingError, match="is not installed"):
            choose_contestants([name], peers=False)
    asked = {own.name for own in choose_contestants(["etips"], peers=True)}
    assert asked == {"etips", *PEERS} - absent


@pytest.mark.parametrize("name", PEERS)
def test_an_entry_names_a_function_of_its_module(name):
    module, _, function = PEERS[name].home.partition(":")
    assert f"def {function}(" in (FOLDER / f"{module}.py").read_text()
    assert PEERS[name].installed == (find_spec(PEERS[name].package) is not None)
    assert bool(PEERS[name].version) <= PEERS[name].installed or PEERS[name].installed


def test_the_document_names_every_peer():
    text = (FOLDER.parents[2] / "docs" / "bench" / "index.md").read_text()
    assert [name for name in PEERS if f"`{name}`" not in text] == []
