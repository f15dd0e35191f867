"""Hospitals that treat alike patients with two drugs by dose, each in its own way; truth is known.

The response to the drugs is the same in all of them. What differs is who comes (case mix), how much
is given (doses) and to whom (practice): the shift between the place where a policy is learned and
the one where it is tested. Doses are numbers and features of their step, as in the Sepsis-3 cohort;
an action is a pair of their classes, so that it means a dose only beside the edges of its classes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf, sqrt
from typing import Final

import numpy as np

from etips.data.coded import Truth
from etips.data.decisions import Floats, Ints
from etips.data.intake.dose_classes import DoseClasses, action_of
from etips.data.recipe import Recipe
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories

FLUID, VASOPRESSOR = "input_4hourly", "max_dose_vaso"
_STATES: Final = ("MeanBP", "Arterial_lactate", "SOFA")
_SPREAD: Final = (0.8, 0.7)  # of the logarithms of both doses
_POINTS: Final = 7  # of the quadrature over the doses of a class
_GRID: Final = np.linspace(-6.0, 6.0, 6001)
_NORMAL: Final = np.array([0.5 * (1 + erf(x / sqrt(2))) for x in _GRID])


@dataclass(frozen=True)
class Place:
    """How a hospital differs from the first.

    Args:
        severity: Standard deviations by which its patients are more ill.
        older: Years by which they are older.
        fluid: Added to the logarithm of the fluid given.
        vasopressor: The same of the vasopressor.
        habit: Added to the logit of giving any of either.
        eagerness: How much more than elsewhere treatment follows pressure and lactate.
    """

    severity: float = 0.0
    older: float = 0.0
    fluid: float = 0.0
    vasopressor: float = 0.0
    habit: float = 0.0
    eagerness: float = 0.0


FIRST: Final = Place()
SECOND: Final = Place(
    severity=0.4, older=6.0, fluid=0.5, vasopressor=-0.35, habit=-0.3, eagerness=0.3
)
"""Older and sicker patients, more fluid, less vasopressor, given to fewer and more by pressure."""
LAVISH: Final = Place(severity=0.3, fluid=1.1, vasopressor=0.8)
"""Two to three times the doses: what is much in the first is little here."""


@dataclass(frozen=True)
class _Given:
    """How the doses of a drug are drawn at each step: whether any, and the mean logarithm."""

    chance: Floats
    centre: Floats
    spread: float

    def draw(self, rng: np.random.Generator) -> Floats:
        given = rng.random(self.chance.size) < self.chance
        dose = np.exp(self.centre + self.spread * rng.normal(size=self.chance.size))
        # As a feature holds it, so that a dose falls into the same class wherever it is looked at.
        return np.where(given, dose, 0.0).astype(np.float32).astype(np.float64)

    def classes(self, edges: Sequence[float]) -> tuple[Floats, Floats]:
        """Chance of each class, shape (n, k), and doses of it, shape (n, k, points)."""
        limits = np.log(np.maximum(edges, 1e-12))
        below = _cdf((limits[None, :] - self.centre[:, None]) / self.spread)
        below = np.hstack([np.zeros((below.shape[0], 1)), below, np.ones((below.shape[0], 1))])
        share = np.diff(below, axis=1)
        chance = np.hstack([(1 - self.chance)[:, None], self.chance[:, None] * share])
        at = (np.arange(_POINTS) + 0.5) / _POINTS
        level = below[:, :-1, None] + share[:, :, None] * at
        dose = np.exp(self.centre[:, None, None] + self.spread * _quantile(level))
        none = np.zeros((dose.shape[0], 1, _POINTS))
        return chance, np.concatenate([none, dose], axis=1)


def simulate_place(
    n_stays: int,
    *,
    seed: int,
    place: Place = FIRST,
    bins: int = 3,
    doses: Sequence[DoseClasses] = (),
    most_steps: int = 8,
    lag: int = 1,
) -> Trajectories:
    """Logged stays of one hospital, with the truth by the classes of its actions.

    Args:
        n_stays: How many.
        seed: The same seed gives the same patients and doses, whatever the classes are.
        place: Which hospital.
        bins: Classes of each dose, none included, by its own quantiles.
        doses: Classes of another hospital, in place of its own.
        most_steps: Stays have 4 to so many.
        lag: 1 as in a cohort, where doses are features of their step. With 0 a decision sees its
            own step, and doses are no features but stand in the classes of actions alone, as when
            columns of a table are read as doses.
    """
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, most_steps + 1, n_stays)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    state, given = _course(rng, offsets, place)
    drawn = [own.draw(rng) for own in given]
    people = np.repeat(np.arange(n_stays), lengths)
    classes = tuple(doses) or tuple(
        DoseClasses.fit(name, dose, bins=bins, people=people)
        for name, dose in zip((FLUID, VASOPRESSOR), drawn, strict=True)
    )
    own = [c.apply(c.column, dose) for c, dose in zip(classes, drawn, strict=True)]
    counts = [c.n_classes for c in classes]
    risk = _risk(state, drawn[0][:, None], drawn[1][:, None])[:, 0]
    age = 62 + place.older + 12 * rng.normal(size=n_stays)
    values = (75 - 9 * state[:, 0], np.exp(0.7 + 0.4 * state[:, 1]), 6 + 2.5 * state[:, 2])
    seen = np.stack([*_a_row_earlier(values, offsets), *drawn] if lag else values, axis=1)
    return Trajectories(
        sequence=seen.astype(np.float32),
        offsets=offsets,
        schema=_schema(classes, place, seed, lag),
        action=action_of(own, counts),
        loss=(rng.random(risk.size) < risk).astype(np.float64),
        static=np.stack([age, rng.random(n_stays) < 0.5], axis=1).astype(np.float32),
        truth=_truth(state, given, classes),
    )


def _schema(classes: tuple[DoseClasses, ...], place: Place, seed: int, lag: int) -> Schema:
    fluid, vasopressor = (own.n_classes for own in classes)
    actions = [f"fluid {i}, vasopressor {j}" for i in range(fluid) for j in range(vasopressor)]
    return Schema(
        sequence=(*_STATES, FLUID, VASOPRESSOR) if lag else _STATES,
        n_actions=len(actions),
        static=("age", "gender"),
        lag=lag,
        actions=tuple(actions),
        provenance={"world": "two hospitals", "place": repr(place), "seed": str(seed)},
        recipe=Recipe(doses=classes, missing="refuse"),
    )


def _course(
    rng: np.random.Generator, offsets: Ints, place: Place
) -> tuple[Floats, tuple[_Given, _Given]]:
    """What was visible before each step, in standard deviations, and what is then given."""
    state = np.empty((offsets[-1], len(_STATES)))
    lengths = np.diff(offsets)
    now = place.severity + rng.normal(size=(lengths.size, len(_STATES)))
    for step in range(lengths.max()):
        there = lengths > step
        state[offsets[:-1][there] + step] = now[there]
        now = place.severity + 0.8 * (now - place.severity) + 0.6 * rng.normal(size=now.shape)
    pressure, lactate, sofa = state.T
    pull = 1 + place.eagerness
    fluid = _Given(
        _expit(0.4 + place.habit + pull * (0.7 * lactate + 0.3 * pressure)),
        5.4 + place.fluid + 0.3 * pull * lactate,
        _SPREAD[0],
    )
    vasopressor = _Given(
        _expit(-0.7 + place.habit + pull * (0.9 * pressure + 0.3 * sofa)),
        -2.0 + place.vasopressor + 0.3 * pull * pressure,
        _SPREAD[1],
    )
    return state, (fluid, vasopressor)


def _a_row_earlier(values: tuple[Floats, ...], offsets: Ints) -> list[Floats]:
    """Each value a row earlier: with lag 1 a decision sees the row before its own."""
    rows = np.minimum(np.arange(offsets[-1]) + 1, np.repeat(offsets[1:], np.diff(offsets)) - 1)
    return [value[rows] for value in values]


def _risk(state: Floats, fluid: Floats, vasopressor: Floats) -> Floats:
    """Chance of a loss, shape (n, doses): fluid helps where lactate is high, the other at shock."""
    pressure, lactate, sofa = (state[:, [number]] for number in range(3))
    f, v = fluid / (fluid + 250), vasopressor / (vasopressor + 0.15)
    better = f * (0.4 + 0.9 * lactate) + v * (0.2 + 0.9 * pressure)
    return _expit(0.2 + 0.5 * sofa + 0.3 * lactate + 0.3 * pressure + 0.7 * f * v - 1.4 * better)


def _truth(state: Floats, given: tuple[_Given, _Given], classes: Sequence[DoseClasses]) -> Truth:
    """Expected loss of a class: over the doses that this hospital gives within it."""
    parts = [own.classes(c.edges) for own, c in zip(given, classes, strict=True)]
    (chance_f, fluid), (chance_v, vasopressor) = parts
    n = state.shape[0]
    expected = np.empty((n, chance_f.shape[1], chance_v.shape[1]))
    for i in range(chance_f.shape[1]):
        for j in range(chance_v.shape[1]):
            pairs = [(a, b) for a in range(_POINTS) for b in range(_POINTS)]
            f = np.stack([fluid[:, i, a] for a, _ in pairs], axis=1)
            v = np.stack([vasopressor[:, j, b] for _, b in pairs], axis=1)
            expected[:, i, j] = _risk(state, f, v).mean(axis=1)
    logging = (chance_f[:, :, None] * chance_v[:, None, :]).reshape(n, -1)
    return Truth(np.arange(n, dtype=np.int32), expected.reshape(n, -1), logging)


def _cdf(x: Floats) -> Floats:
    below: Floats = np.interp(x, _GRID, _NORMAL)
    return below


def _quantile(level: Floats) -> Floats:
    at: Floats = np.interp(level, _NORMAL, _GRID)
    return at


def _expit(x: Floats) -> Floats:
    chance: Floats = 1 / (1 + np.exp(-x))
    return chance
