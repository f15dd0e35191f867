"""Who takes part in a bench: every method of the catalogue, and peers where they are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

from etips.bench.peers import PEERS
from etips.errors import SettingError
from etips.learn.learners.baselines import MostFrequent, RandomPolicy
from etips.learn.learners.catalogue import METHODS
from etips.results.bench_result import Group


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
    """Those asked for, in the order of the catalogue; without names all methods."""
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
