"""S4, S6: propensities that ignore a visible reason for treatment, in worlds where nothing helps.

Wrong models here are calibrated, pooled and by action. All seeds are fixed: a failure is a change
of the code, not bad luck. Marker `statistical` repeats; the plain tests are one world each.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from evaluation_logs import softmax

from etips.data.history_rows import visible_rows
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.evaluation import Log, assess

KINDS = ("line", "binary", "skewed", "square", "product", "wide", "earlier step", "many actions")


@dataclass(frozen=True)
class World:
    """A null world: the loss follows severity, whatever is done."""

    features: np.ndarray
    severity: np.ndarray
    table: np.ndarray  # what the clinicians do
    action: np.ndarray
    loss: np.ndarray
    stay: np.ndarray

    @property
    def n_actions(self):
        return self.table.shape[1]

    @property
    def frequencies(self):
        """Propensities that know nothing of the patient, and are right on average."""
        share = np.bincount(self.action, minlength=self.n_actions) / self.action.size
        return np.tile(share, (self.action.size, 1))

    @property
    def risk(self):
        return float((1 / (1 + np.exp(-self.severity))).mean())

    def log(self, table, **more):
        rows = np.arange(self.action.size)
        chance = table[rows, self.action]
        fields = {"propensities": table, "features": self.features, **more}
        return Log(self.loss, self.action, chance, self.stay, self.n_actions, **fields)

    def always(self, action=0):
        return np.tile(np.eye(self.n_actions)[action], (self.action.size, 1))


def make(kind, n_stays, seed):
    generator = np.random.default_rng([57, KINDS.index(kind), seed])
    length = generator.integers(1, 4, n_stays)
    stay = np.repeat(np.arange(n_stays), length)
    rows = generator.normal(size=(stay.size, 40 if kind == "wide" else 5))
    n_actions = 60 if kind == "many actions" else 4
    if kind == "binary":
        rows[:, 0] = generator.random(stay.size) < 0.4
    if kind == "skewed":
        rows[:, 0] = np.minimum(generator.gamma(1.0, size=stay.size), 5)
    severity = 1.3 * {
        "square": (rows[:, 0] ** 2 - 1) / 1.4,
        "product": rows[:, 0] * rows[:, 1],
        "binary": 2 * rows[:, 0] - 0.8,
        "skewed": rows[:, 0] - 1,
        "earlier step": _first_of(rows[:, 0], length),
    }.get(kind, rows[:, 0])
    pull = generator.permutation(np.linspace(-0.8, 0.8, n_actions))
    pull[0] = 0.8
    scores = np.outer(severity, pull) + 0.4 * np.outer(rows[:, 2], generator.normal(size=n_actions))
    table = 0.95 * softmax(scores) + 0.05 / n_actions
    action = (generator.random(stay.size)[:, None] > table.cumsum(axis=1)).sum(axis=1)
    action = action.clip(max=n_actions - 1)
    loss = (generator.random(stay.size) < 1 / (1 + np.exp(-severity))).astype(float)
    features = _histories(rows, length, action, loss, n_actions) if kind == "earlier step" else rows
    return World(features, severity, table, action, loss, stay)


def _first_of(column, length):
    start = np.concatenate([[0], np.cumsum(length)[:-1]])
    return np.repeat(column[start], length)


def _histories(rows, length, action, loss, n_actions):
    return visible_rows(
        Trajectories(
            sequence=rows.astype(np.float32),
            offsets=np.concatenate([[0], np.cumsum(length)]),
            schema=Schema(sequence=tuple("abcde"), n_actions=n_actions, lag=0),
            action=action,
            loss=loss,
        )
    )


def means(world):
    """An outcome model that knows the action alone."""
    by_action = [world.loss[world.action == k].mean() for k in range(world.n_actions)]
    return np.tile(np.nan_to_num(by_action, nan=world.loss.mean()), (world.action.size, 1))


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "many actions"])
def test_one_world_of_each_kind_is_told_from_another(kind):
    world = make(kind, 1000, seed=0)
    assert assess(world.log(world.frequencies), world.always()).verdict.label != "reliable"
    assert assess(world.log(world.table), world.always()).verdict.label == "reliable"


def tally(kind, n_stays, worlds):
    """Share called reliable of wrong and of right propensities, and how many of these cover."""
    wrong, right, covers = [], [], []
    for seed in range(1, worlds + 1):
        world = make(kind, n_stays, seed)
        policy = world.always() if kind != "many actions" else softmax(
            np.tile(np.linspace(1, 0, 60), (world.action.size, 1))
        )  # fmt: skip
        blind = assess(world.log(world.frequencies), policy)
        wrong.append(blind.verdict.label == "reliable")
        found = assess(world.log(world.table), policy)
        right.append(found.verdict.label == "reliable")
        estimate = found.estimates[0]
        covers.append(estimate.low <= make(kind, 20_000, 10_000 + seed).risk <= estimate.high)
    right = np.array(right)
    return np.mean(wrong), right.mean(), np.array(covers)[right].mean()


@pytest.mark.statistical
@pytest.mark.parametrize("n_stays", [300, 2000])
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "many actions"])
def test_wrong_but_calibrated_propensities_are_not_reliable_and_right_ones_are(kind, n_stays):
    wrong, right, covered = tally(kind, n_stays, worlds=40)
    assert wrong <= 0.05
    assert right >= 0.75  # 80 % up to the noise of 40 worlds
    assert covered >= 0.85


@pytest.mark.statistical
def test_sixty_actions_are_judged_too():
    wrong, right, covered = tally("many actions", 6000, worlds=20)
    assert wrong <= 0.05
    assert right >= 0.75
    assert covered >= 0.8


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["line", "product", "earlier step"])
def test_two_wrong_models_are_never_reliable_whatever_the_headline(kind):
    for seed in range(20):
        world = make(kind, 800, seed)
        log = world.log(world.frequencies, predicted=means(world))
        for headline in ("sndr", "dr", "snips", "dm"):
            found = assess(log, world.always(), estimators=(headline,))
            assert found.verdict.label != "reliable"
