"""The worlds: one entry each. A new one is its own file and a line here.

A world is imported when it is asked for: that of the digits brings torch, which takes a second.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from etips.data.trajectories import Trajectories
from etips.progress import Progress, no_progress
from etips.worlds.bandit import Logging


@dataclass(frozen=True)
class Simulation:
    """What to simulate; a world takes what concerns it.

    Args:
        n_stays: How many stays, or samples; None for all that a world of fixed size has.
        seed: Same seed, same data.
        lag: 0 or 1, as far as the world has it.
        logging: Of labelled samples: how the logging policy acts.
        progress: Given how far it is.
    """

    n_stays: int | None
    seed: int = 0
    lag: int = 0
    logging: Logging = "sampled"
    progress: Progress = no_progress


@dataclass(frozen=True)
class World:
    """A source of logged decisions whose truth is known.

    Args:
        name: On the command line and in studies.
        sentence: What it is, for the help page.
        home: Where its function is that takes a `Simulation`: "module:function".
        lags: Which it can have, the usual one first.
        usual_stays: How many stays to simulate if nobody says; None for all there are.
        labels: Where its function is that gives the samples with their true labels as actions, of
            a number of samples and a seed; empty for a world without labels.
    """

    name: str
    sentence: str
    home: str
    lags: tuple[int, ...] = (0,)
    usual_stays: int | None = 20_000
    labels: str = ""

    @property
    def has_labels(self) -> bool:
        """Whether every sample has a right action, so that accuracy can be told."""
        return bool(self.labels)

    def simulate(self, wanted: Simulation) -> Trajectories:
        """Logged stays with their truth."""
        function = cast(Callable[[Simulation], Trajectories], _load(self.home))
        return function(wanted)

    def labelled(self, n: int | None, *, seed: int) -> Trajectories:
        """The samples with their true labels as actions, each of loss 0."""
        function = cast(Callable[..., Trajectories], _load(self.labels))
        return function(n=n, seed=seed)


_WORLDS = (
    World(
        name="digits-zeros",
        sentence="the paper's MNIST task of counting the zeros of a sequence",
        home="etips.worlds.digits:simulate_zeros",
        usual_stays=None,
        labels="etips.worlds.digits:labelled_zeros",
    ),
    World(
        name="digits-rows",
        sentence="the paper's MNIST task of reading a digit row by row",
        home="etips.worlds.digits:simulate_rows",
        usual_stays=None,
        labels="etips.worlds.digits:labelled_rows",
    ),
    World(
        name="icu-sepsis",
        sentence="stays of a published sepsis model under its clinicians",
        home="etips.worlds.icu_sepsis:simulate_stays",
        lags=(1, 0),
    ),
    World(
        name="icu-sepsis-mortality",
        sentence="the same, with death as the one loss",
        home="etips.worlds.icu_sepsis:simulate_mortality",
    ),
    World(
        name="clinic",
        sentence="a small tunable world",
        home="etips.worlds.clinic:simulate_clinic",
    ),
    World(
        name="tolerance",
        sentence="eight visits, in which what helps at once harms in the long run",
        home="etips.worlds.tolerance:simulate_clinicians",
        usual_stays=2_000,
    ),
    World(
        name="tolerance-randomised",
        sentence="the same as a randomised trial",
        home="etips.worlds.tolerance:simulate_randomised",
        usual_stays=2_000,
    ),
)

WORLDS: Mapping[str, World] = {world.name: world for world in _WORLDS}
"""Every world by its name, in the order of the help page."""


def _load(place: str) -> object:
    module, _, function = place.partition(":")
    return getattr(import_module(module), function)
