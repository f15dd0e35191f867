"""A world in which any peer should beat what was done, and how far one gets there."""

from dataclasses import replace

import pytest

from etips.bench.peers.peer import PeerPolicy
from etips.bench.peers.peer_registry import PEERS
from etips.worlds.clinic import Clinic

WORLD = Clinic(overlap=0.5, n_contexts=60, n_actions=3, effect=0.9)


def gain_of(name):
    """True risk of the clinicians minus that of what a peer learns; skips where it is not."""
    peer = PEERS[name]
    if not peer.installed:
        pytest.skip(f"{peer.package} is not installed: pip install 'etips[peers]'")
    learn = replace(WORLD.log(400, seed=0), propensity=None)
    test = WORLD.log(300, seed=1)
    policy = PeerPolicy.learned(peer.load(), learn, seed=0, quick=True)
    done = policy.predict_proba(test)
    again = PeerPolicy.learned(peer.load(), learn, seed=0, quick=True).predict_proba(test)
    assert (done == again).all()
    return test.true_risk(test.true_logging()) - test.true_risk(done)
