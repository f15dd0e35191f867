"""Policies at work in a world: what becomes of whole stays where a policy decides throughout.

A log shows what one changed decision would do. Here the policy's own earlier actions have shaped
the patient it decides about, as they would in use.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from etips.data.coded import Floats32
from etips.data.decisions import Bools, Floats, Ints
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require
from etips.evaluation.whole_stay_course import Outcome, require_outcome
from etips.worlds.draws import generator

HistoryPolicy = Callable[[Trajectories], Floats]
"""Probability of every action at every decision, shape (n_decisions, n_actions), such as the
`predict_proba` of a policy. A row of zeros leaves the decision to the world's clinicians."""

ENDED = -1
"""Stands for the state of a stay that is over."""

_AT_ONCE = 20_000  # stays that are walked side by side, fewer where that would be
_NUMBERS_AT_ONCE = 40_000_000  # features
_DEPLOYMENT = 50  # first stream of random numbers; one more for every batch of stays


class SteppingWorld(Protocol):
    """A world that can be walked through step by step.

    States are whole numbers. All chance comes from `draws`, one row a stay, so that two policies
    meet the same luck.
    """

    @property
    def schema(self) -> Schema:
        """Of the logs of this world."""

    @property
    def max_steps(self) -> int:
        """Most steps of a stay."""

    def draw(self, n_stays: int, rng: np.random.Generator) -> Floats:
        """Random numbers of one step, a row a stay; the first column is uniform, for the action."""

    def admit(self, draws: Floats) -> Ints:
        """First states, shape (n,)."""

    def observe(self, state: Ints, draws: Floats) -> Floats32:
        """What is visible, shape (n, n_features)."""

    def clinicians(self, state: Ints) -> Floats:
        """What those who made the log do, shape (n, n_actions)."""

    def advance(self, state: Ints, action: Ints, draws: Floats) -> tuple[Floats, Ints]:
        """Loss, and the next state or `ENDED`, shape (n,) both."""


class StayRisk(NamedTuple):
    """Mean outcome of a stay and the standard error of that mean, from simulated stays."""

    risk: float
    std_error: float
    n_stays: int


@dataclass(frozen=True, eq=False)
class Walk:
    """Stays side by side, shape (n_stays, max_steps) each; what lies past the end is not read.

    `features` are those that were visible, shape (n_stays, max_steps, n_features); `lengths` are
    the steps of each stay, shape (n_stays,).
    """

    state: Ints
    features: Floats32
    action: Ints
    loss: Floats
    lengths: Ints

    def question(self, schema: Schema, stays: Ints, step: int) -> Trajectories:
        """Some stays up to a step, whose action is asked for; the actions before it are known."""
        width, n = step + 1, stays.size
        asked = np.zeros((n, width), bool)
        asked[:, step] = True
        return Trajectories(
            sequence=self.features[stays, :width].reshape(n * width, -1),
            offsets=np.arange(n + 1) * width,
            schema=schema,
            action=self.action[stays, :width].ravel(),
            loss=self.loss[stays, :width].ravel(),
            eligible=asked.ravel(),
        )


@dataclass(frozen=True, eq=False)
class Deployment:
    """Stays that a policy treated: sum of losses, last loss and steps of each, shape (n_stays,)."""

    total: Floats
    last: Floats
    lengths: Ints

    def outcome(self, outcome: Outcome = "sum") -> Floats:
        """Outcome of each stay, shape (n_stays,)."""
        require_outcome(outcome)
        return self.total if outcome == "sum" else self.last

    def stay_risk(self, outcome: Outcome = "sum") -> StayRisk:
        """Mean outcome and its standard error."""
        each = self.outcome(outcome)
        error = each.std(ddof=1) / np.sqrt(each.size) if each.size > 1 else np.inf
        return StayRisk(float(each.mean()), float(error), each.size)


def deploy(
    world: SteppingWorld, policy: HistoryPolicy, *, n_stays: int = 200_000, seed: int = 0
) -> Deployment:
    """Let a policy treat new patients of a world from admission to the end of their stays.

    Patients and luck depend on the seed alone: the difference of two policies deployed with one
    seed has a smaller error than either. With `lag=1` a first step has no history, and the
    clinicians take it, as in the log.

    Args:
        world: One that can be walked through.
        policy: Asked once a step about all stays that go on.
        n_stays: How many patients.
        seed: Of the patients and of all chance.
    """
    if n_stays < 1:
        raise SettingError("n_stays", "must be at least 1")
    parts = []
    width = max(len(world.schema.sequence) * world.max_steps, 1)
    at_once = min(_AT_ONCE, max(_NUMBERS_AT_ONCE // width, 1))
    for number, first in enumerate(range(0, n_stays, at_once)):
        size = min(at_once, n_stays - first)
        walked = walk(world, policy, n_stays=size, rng=generator(seed, _DEPLOYMENT + number))
        there = np.arange(world.max_steps) < walked.lengths[:, None]
        last = walked.loss[np.arange(size), walked.lengths - 1]
        parts.append((np.where(there, walked.loss, 0.0).sum(axis=1), last, walked.lengths))
    total, last, lengths = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Deployment(total, last, lengths)


class Followed(Protocol):
    """A policy that says what it does once somebody follows it, such as a fitted one."""

    def deployed(self, data: Trajectories) -> tuple[Floats, Bools]:
        """Probability of each action that is taken, and where the clinicians decide."""


def follow(policy: Followed) -> HistoryPolicy:
    """What a fitted policy does where somebody follows it; the clinicians where it abstains."""

    def act(asked: Trajectories) -> Floats:
        probabilities, abstained = policy.deployed(asked)
        return np.where(abstained[:, None], 0.0, probabilities)

    return act


def walk(
    world: SteppingWorld, policy: HistoryPolicy | None, *, n_stays: int, rng: np.random.Generator
) -> Walk:
    """Stays under a policy, or under the world's clinicians if there is none."""
    shape = (n_stays, world.max_steps)
    walked = Walk(
        state=np.full(shape, ENDED),
        features=np.zeros((*shape, len(world.schema.sequence)), np.float32),
        action=np.zeros(shape, np.int64),
        loss=np.zeros(shape),
        lengths=np.zeros(n_stays, np.int64),
    )
    state = world.admit(world.draw(n_stays, rng))
    going = np.arange(n_stays)
    for step in range(world.max_steps):
        draws = world.draw(n_stays, rng)[going]  # for all: whoever goes on keeps his own
        walked.state[going, step] = state
        walked.features[going, step] = world.observe(state, draws)
        # one action a row by inverse cdf; an action without a chance is never taken
        edges = np.cumsum(_chances(world, policy, walked, going, step), axis=1)
        action = (edges <= (draws[:, 0] * edges[:, -1])[:, None]).sum(axis=1)
        loss, following = world.advance(state, action, draws)
        walked.action[going, step], walked.loss[going, step] = action, loss
        walked.lengths[going] = step + 1
        goes_on = following != ENDED
        going, state = going[goes_on], following[goes_on]
        if not going.size:
            break
    return walked


def _chances(
    world: SteppingWorld, policy: HistoryPolicy | None, walked: Walk, going: Ints, step: int
) -> Floats:
    """Probability of each action of the stays that go on, shape (n, n_actions)."""
    usual = world.clinicians(walked.state[going, step])
    if policy is None or step < world.schema.lag:
        return usual
    answer = np.asarray(policy(walked.question(world.schema, going, step)), np.float64)
    if answer.shape != usual.shape:
        raise DataError("policy", "must give one row a decision, one column an action")
    total = answer.sum(axis=1)
    sound = (answer >= 0).all(axis=1) & ((np.abs(total - 1) < 1e-4) | (total == 0))
    require("policy", "must give probabilities that sum to 1, or a row of zeros", sound)
    return np.where(total[:, None] == 0, usual, answer)
