"""The peers: one entry each. A new one is its own file and a line here."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import cast

from etips.bench.peers.peer import Teach


@dataclass(frozen=True)
class Peer:
    """A policy learner of another package.

    Args:
        name: On the command line and in results.
        label: What its makers call it.
        sentence: What it does.
        package: Module that must be there.
        home: Where its adapter is: "module:function".
    """

    name: str
    label: str
    sentence: str
    package: str
    home: str

    @property
    def installed(self) -> bool:
        """Whether its package is here."""
        return find_spec(self.package) is not None

    @property
    def version(self) -> str:
        """Of its package; empty where that is not here."""
        try:
            return version(self.package)
        except PackageNotFoundError:
            return ""

    def load(self) -> Teach:
        """Its adapter, which imports the package."""
        module, _, function = self.home.partition(":")
        return cast(Teach, getattr(import_module(f"etips.bench.peers.{module}"), function))


_PEERS = (
    Peer(
        "lightgbm",
        "LightGBM",
        "One model of the loss an action, then the least.",
        "lightgbm",
        "lightgbm_peer:teach",
    ),
    Peer(
        "vowpal-wabbit",
        "Vowpal Wabbit",
        "A linear contextual bandit, doubly robust.",
        "vowpalwabbit",
        "vowpal_peer:teach",
    ),
    Peer(
        "econml-tree",
        "econml DRPolicyTree",
        "A tree of greatest doubly robust gain.",
        "econml",
        "econml_peer:teach_tree",
    ),
    Peer(
        "econml-forest",
        "econml DRPolicyForest",
        "A forest of such trees.",
        "econml",
        "econml_peer:teach_forest",
    ),
    Peer(
        "obp-ipw",
        "obp IPWLearner",
        "A classifier weighted by reward over propensity.",
        "obp",
        "obp_peer:teach",
    ),
    Peer(
        "d3rlpy-cql",
        "d3rlpy DiscreteCQL",
        "Conservative Q-learning over whole stays.",
        "d3rlpy",
        "d3rlpy_peer:teach_cql",
    ),
    Peer(
        "d3rlpy-bcq",
        "d3rlpy DiscreteBCQ",
        "Batch-constrained Q-learning over whole stays.",
        "d3rlpy",
        "d3rlpy_peer:teach_bcq",
    ),
)

PEERS: Mapping[str, Peer] = {peer.name: peer for peer in _PEERS}
"""Every peer by its name, in the order of the page."""
