"""Who takes part in a bench: every method of the catalogue, and peers where they are asked for.

The peers have one entry each: a new one is an adapter in `peers/` and a line here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import cast

from etips.bench.peers.peer import Teach
from etips.errors import SettingError
from etips.learn.learners.baselines import MostFrequent, RandomPolicy
from etips.learn.learners.catalogue import METHODS
from etips.results.bench_result import Group


@dataclass(frozen=True)
class Peer:
    """A policy learner of another package.

    Args:
        name: On the command line and in results.
        label: What its makers call it.
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


@dataclass(frozen=True)
class Contestant:
    """A method or a peer that takes part; its cost is its time against others, roughly."""

    name: str
    label: str
    sentence: str
    group: Group
    cost: float = 1.0


def all_contestants() -> dict[str, Contestant]:
    """Every method and every peer by name, whether installed or not."""
    known = {}
    for name, method in METHODS.items():
        simple = method.imitates or issubclass(method.learner, MostFrequent | RandomPolicy)
        group: Group = "simple" if simple else "told" if method.known_propensities else "ours"
        cost = 0.2 + 2.0 * len(method.stages)
        known[name] = Contestant(name, method.label, method.sentence, group, cost)
    for name, peer in PEERS.items():
        known[name] = Contestant(name, peer.label, peer.sentence, "peer", 2.0)
    return known


def choose_contestants(names: Sequence[str] | None, *, peers: bool) -> list[Contestant]:
    """Those asked for, in the order of the catalogue; all methods if nobody says."""
    known = all_contestants()
    if unknown := [name for name in names or () if name not in known]:
        rule = f"must be some of {', '.join(known)}"
        raise SettingError("--methods", f"{rule}; {len(unknown)} are not")
    lacking = [name for name in names or () if name in PEERS and not PEERS[name].installed]
    if lacking:
        fix = "Install the peers with: pip install 'etips[peers]'."
        raise SettingError("--methods", f"{lacking[0]} is not installed", fix=fix)
    wanted = set(METHODS) if names is None else set(names)
    if peers:
        wanted |= {name for name, own in PEERS.items() if own.installed}
    return [own for name, own in known.items() if name in wanted]
