"""Who takes part in a bench: every method of the catalogue, and peers where they are asked for."""

from collections.abc import Sequence
from dataclasses import dataclass

from etips.bench.peers.peer_registry import PEERS
from etips.errors import SettingError
from etips.learn.learners.baselines import MostFrequent, RandomPolicy
from etips.learn.learners.catalogue import METHODS, Method
from etips.results.bench_result import Group


@dataclass(frozen=True)
class Contestant:
    """Somebody who learns a policy.

    Args:
        name: On the command line and in results.
        label: What a reader knows it by.
        sentence: What it does.
        group: Whose it is.
        cost: How long it takes against others, roughly.
    """

    name: str
    label: str
    sentence: str
    group: Group
    cost: float = 1.0


def all_contestants() -> dict[str, Contestant]:
    """Every method and every peer by name, whether installed or not."""
    ours = {name: _of_catalogue(method) for name, method in METHODS.items()}
    peers = {
        name: Contestant(name, own.label, own.sentence, "peer", 2.0) for name, own in PEERS.items()
    }
    return {**ours, **peers}


def choose_contestants(names: Sequence[str] | None, *, peers: bool) -> list[Contestant]:
    """Those asked for, in the order of the catalogue; all methods if nobody says.

    Args:
        names: Methods and peers; peers that are named take part without `peers`.
        peers: Whether the installed peers take part too.
    """
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


def absent_peers() -> list[str]:
    """Peers whose packages are not here."""
    return [name for name, own in PEERS.items() if not own.installed]


def _of_catalogue(method: Method) -> Contestant:
    simple = method.imitates or issubclass(method.learner, MostFrequent | RandomPolicy)
    group: Group = "simple" if simple else "told" if method.known_propensities else "ours"
    return Contestant(method.name, method.label, method.sentence, group, _cost(method))


def _cost(method: Method) -> float:
    return 0.2 + 2.0 * len(method.stages)
