"""Who takes part: the catalogue by itself, peers where they are."""

import pytest

from etips.bench.contestants import absent_peers, all_contestants, choose_contestants
from etips.bench.peers.peer_registry import PEERS
from etips.errors import SettingError
from etips.learn.learners.catalogue import METHODS


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
    with pytest.raises(SettingError, match="--methods: must be some of etips"):
        choose_contestants(["etips", "magic"], peers=False)
    for name in absent_peers():
        with pytest.raises(SettingError, match="is not installed"):
            choose_contestants([name], peers=False)
    asked = {own.name for own in choose_contestants(["etips"], peers=True)}
    assert asked == {"etips", *PEERS} - set(absent_peers())
