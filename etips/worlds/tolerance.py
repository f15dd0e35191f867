"""Tolerance: what helps today builds up harm, so that one decision and a whole stay disagree."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from etips.data.coded import Floats32, Truth
from etips.data.decisions import Floats, Ints
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError
from etips.evaluation.whole_stay_course import Outcome, require_outcome
from etips.worlds.deployment import Deployment, HistoryPolicy, deploy, walk
from etips.worlds.draws import Chances, generator, require_policy, require_settings
from etips.worlds.world_registry import Simulation

_LOG = 1  # stream of random numbers
_BYSTANDERS = 2  # features that mean nothing

# Chance of a loss without treatment: least, more with severity, more with tolerance.
_BASE, _BY_SEVERITY, _BY_TOLERANCE = 0.15, 0.40, 0.40
# Share of that chance that a treatment takes away.
_MILD_FITTING, _MILD_OTHER, _MODERATE, _STRONG = 0.40, 0.10, 0.45, 0.70
_BLUNTED = 0.5  # of moderate and strong ones, by full tolerance
# Chance that severity rises or falls by one level: least, and more with tolerance or help.
_RISE, _RISE_BY_TOLERANCE, _FALL, _FALL_BY_HELP = 0.20, 0.35, 0.15, 0.45
_CALM = 0.5  # chance that tolerance falls a level under a mild treatment; without any it is 1
_SHARPNESS = 6.0  # of the clinicians, who give the sicker the stronger


@dataclass(frozen=True)
class Tolerance:
    """Patients seen several times, whom a strong treatment helps at once and harms in the long run.

    Action 0 is rest. The next ones are mild, one for each phenotype of patients; the last but one
    is moderate, the last strong. Moderate and strong treatments raise tolerance, which blunts them,
    makes losses likelier and the patient sicker; rest and mild ones let it fall. Severity,
    phenotype and a marker of tolerance are visible, beside two features that mean nothing. The
    clinicians look at severity and phenotype alone: nothing hidden moves their choice.

    Args:
        n_actions: How many actions K, at least 5; there are K - 3 phenotypes.
        n_visits: Decisions of every stay.
        n_levels: Levels of severity, and of tolerance.
        overlap: Share of the uniform policy mixed into the logging policy; 1 is a randomised trial.
        buildup: How fast tolerance rises, in [0, 1]; with 0 what is best now is best for the stay.
        effect: How much treatments help, in [0, 1]; with 0, and no buildup, all policies are alike.
        noise: Standard deviation of the marker around tolerance, which goes from 0 to 1. The
            marker's history and the actions taken tell more than the marker.
    """

    n_actions: int = 5
    n_visits: int = 8
    n_levels: int = 5
    overlap: float = 0.3
    buildup: float = 1.0
    effect: float = 1.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        require_settings(
            n_actions=(self.n_actions >= 5, "must be at least 5"),
            n_visits=(self.n_visits >= 1, "must be at least 1"),
            n_levels=(self.n_levels >= 2, "must be at least 2"),
            overlap=(0 <= self.overlap <= 1, "must be in [0, 1]"),
            buildup=(0 <= self.buildup <= 1, "must be in [0, 1]"),
            effect=(0 <= self.effect <= 1, "must be in [0, 1]"),
            noise=(0 <= self.noise < np.inf, "must be finite and not negative"),
        )

    def log(self, n_stays: int, *, seed: int) -> Trajectories:
        """Log stays under the clinicians; a decision sees its own visit (`lag=0`)."""
        require_settings(n_stays=(n_stays >= 1, "must be at least 1"))
        walked = walk(self, None, n_stays=n_stays, rng=generator(seed, _LOG))
        state, action, schema = walked.state.ravel(), walked.action.ravel(), self.schema
        return Trajectories(
            sequence=walked.features.reshape(state.size, -1),
            offsets=np.arange(n_stays + 1) * self.n_visits,
            schema=replace(schema, provenance={**schema.provenance, "seed": str(seed)}),
            action=action,
            loss=walked.loss.ravel(),
            propensity=self._tables.logging[state, action],
            truth=Truth(state.astype(np.int32), self._tables.loss, self._tables.logging),
        )

    def stay_risk(self, policy: Floats, *, outcome: Outcome = "sum") -> float:
        """Exact expected outcome of a stay that a policy treats from its first visit to its last.

        Args:
            policy: Probability of each action in each state, shape (n_states, n_actions), or in
                each visit and state, shape (n_visits, n_states, n_actions); see `state_of`.
            outcome: The sum of the stay's losses, or the last of them.
        """
        require_outcome(outcome)
        each, now = [], self._tables.start
        for table in self._visits(policy):
            each.append(float(now @ (table * self._tables.loss).sum(axis=1)))
            now = np.einsum("s,sa,sat->t", now, table, self._moves)
        return sum(each) if outcome == "sum" else each[-1]

    def decision_risk(self, policy: Floats) -> float:
        """Exact risk of a policy at one decision of the log, the others left as they were.

        Args:
            policy: As in `stay_risk`.
        """
        total, now = 0.0, self._tables.start
        for table in self._visits(policy):
            total += float(now @ (table * self._tables.loss).sum(axis=1))
            now = np.einsum("s,sa,sat->t", now, self._tables.logging, self._moves)
        return total / self.n_visits

    def deploy(self, policy: HistoryPolicy, *, n_stays: int = 200_000, seed: int = 0) -> Deployment:
        """What becomes of new stays under a policy of histories; see `deployment.deploy`."""
        return deploy(self, policy, n_stays=n_stays, seed=seed)

    def best_table(self, outcome: Outcome = "sum") -> Floats:
        """The best policy of whole stays, shape (n_visits, n_states, n_actions)."""
        require_outcome(outcome)
        ahead, visits = np.zeros(self.n_states), []
        for visit in reversed(range(self.n_visits)):
            counts = outcome == "sum" or visit == self.n_visits - 1
            expected = self._tables.loss * counts + self._moves @ ahead
            visits.append(np.eye(self.n_actions)[expected.argmin(axis=1)])
            ahead = expected.min(axis=1)
        return np.stack(visits[::-1])

    def greedy_table(self) -> Floats:
        """The best policy of one decision, shape (n_states, n_actions)."""
        return np.asarray(np.eye(self.n_actions)[self._tables.loss.argmin(axis=1)])

    def constant_table(self, action: int) -> Floats:
        """One action for everybody, shape (n_states, n_actions)."""
        return np.asarray(np.eye(self.n_actions)[np.full(self.n_states, action)])

    def logging_table(self) -> Floats:
        """What the clinicians do, shape (n_states, n_actions)."""
        return self._tables.logging

    def expected_loss_table(self) -> Floats:
        """Expected loss of each action in each state, shape (n_states, n_actions)."""
        return self._tables.loss

    @property
    def n_states(self) -> int:
        """Phenotypes times levels of severity times levels of tolerance."""
        return (self.n_actions - 3) * self.n_levels**2

    def state_of(self, phenotype: Ints, severity: Ints, tolerance: Ints) -> Ints:
        """Number of a state, from the number of its phenotype and its levels."""
        return (phenotype * self.n_levels + severity) * self.n_levels + tolerance

    @property
    def schema(self) -> Schema:
        """Of every log of this world, but for the seed."""
        mild = [f"mild {kind}" for kind in range(self.n_actions - 3)]
        kinds = [f"phenotype {kind}" for kind in range(self.n_actions - 3)]
        name = "tolerance-randomised" if self.overlap == 1 else "tolerance"
        others = [f"bystander {number}" for number in range(_BYSTANDERS)]
        return Schema(
            sequence=("severity", "tolerance", *kinds, *others),
            n_actions=self.n_actions,
            lag=0,
            actions=("rest", *mild, "moderate", "strong"),
            provenance={"world": name, "setting": repr(self)},
        )

    @property
    def max_steps(self) -> int:
        """Visits of a stay."""
        return self.n_visits

    def draw(self, n_stays: int, rng: np.random.Generator) -> Floats:
        """Uniform numbers for action, severity, tolerance and loss; normal ones for features."""
        uniform, normal = rng.random((n_stays, 4)), rng.normal(size=(n_stays, 1 + _BYSTANDERS))
        return np.concatenate([uniform, normal], axis=1)

    def admit(self, draws: Floats) -> Ints:
        """Any phenotype and severity, no tolerance."""
        start = Chances.of(self._tables.start[None])
        return start.at(np.zeros(len(draws), np.int64), draws[:, 0])

    def observe(self, state: Ints, draws: Floats) -> Floats32:
        """Severity, the marker of tolerance, the phenotype, and what means nothing."""
        phenotype, severity, tolerance = self._parts(state)
        columns = (
            severity / (self.n_levels - 1),
            tolerance / (self.n_levels - 1) + self.noise * draws[:, 4],
            *np.eye(self.n_actions - 3)[phenotype].T,
            *draws[:, 5:].T,
        )
        return np.stack(columns, axis=1).astype(np.float32)

    def clinicians(self, state: Ints) -> Floats:
        """What the clinicians do in these states, shape (n, n_actions)."""
        return self._tables.logging[state]

    def advance(self, state: Ints, action: Ints, draws: Floats) -> tuple[Floats, Ints]:
        """The loss of a visit, and the state at the next."""
        tables, (phenotype, severity, tolerance) = self._tables, self._parts(state)
        sicker = _moved(tables.sicker[state, action], tables.better[state, action], draws[:, 1])
        more = _moved(tables.more[action], tables.less[action], draws[:, 2])
        top = self.n_levels - 1
        following = self.state_of(
            phenotype, np.clip(severity + sicker, 0, top), np.clip(tolerance + more, 0, top)
        )
        loss = (draws[:, 3] < tables.loss[state, action]).astype(np.float64)
        return loss, following

    def _visits(self, policy: Floats) -> Floats:
        """A table a visit, refused unless each holds probabilities."""
        shape = (self.n_visits, self.n_states, self.n_actions)
        if policy.shape not in (shape, shape[1:]):
            raise DataError("policy", f"must have shape {shape[1:]} or {shape}")
        require_policy(policy.reshape(-1, self.n_actions))
        return np.broadcast_to(policy, shape)

    def _parts(self, state: Ints) -> tuple[Ints, Ints, Ints]:
        rest, tolerance = np.divmod(state, self.n_levels)
        phenotype, severity = np.divmod(rest, self.n_levels)
        return phenotype, severity, tolerance

    @cached_property
    def _tables(self) -> "_Tables":
        return _build(self)

    @cached_property
    def _moves(self) -> Floats:
        """Chance of each next state, shape (n_states, n_actions, n_states)."""
        tables, top = self._tables, self.n_levels - 1
        state = np.arange(self.n_states)
        phenotype, severity, tolerance = self._parts(state)
        steady = 1 - tables.sicker - tables.better
        moves = np.zeros((self.n_states, self.n_actions, self.n_states))
        for by, chance in ((-1, tables.better), (0, steady), (1, tables.sicker)):
            for more, risen in (
                (-1, tables.less),
                (0, 1 - tables.less - tables.more),
                (1, tables.more),
            ):
                ends = np.clip(severity + by, 0, top), np.clip(tolerance + more, 0, top)
                moves[state, :, self.state_of(phenotype, *ends)] += chance * risen
        return moves


@dataclass(frozen=True, eq=False)
class _Tables:
    start: Floats  # (n_states,)
    logging: Floats  # (n_states, n_actions), like those that follow
    loss: Floats
    sicker: Floats  # chance that severity rises a level
    better: Floats  # that it falls
    more: Floats  # that tolerance rises, (n_actions,)
    less: Floats


def simulate_clinicians(wanted: Simulation) -> Trajectories:
    """A log of clinicians who treat the sicker harder, as the registry of worlds asks for it."""
    return Tolerance().log(wanted.n_stays or 0, seed=wanted.seed)


def simulate_randomised(wanted: Simulation) -> Trajectories:
    """A log in which every action was equally likely, as the registry of worlds asks for it."""
    return Tolerance(overlap=1.0).log(wanted.n_stays or 0, seed=wanted.seed)


def _build(world: Tolerance) -> _Tables:
    phenotype, level, risen = world._parts(np.arange(world.n_states))
    severity, tolerance = level / (world.n_levels - 1), risen / (world.n_levels - 1)
    mild = np.arange(1, world.n_actions - 2)
    fits = phenotype[:, None] == mild - 1
    help_ = np.zeros((world.n_states, world.n_actions))
    help_[:, mild] = np.where(fits, _MILD_FITTING, _MILD_OTHER)
    help_[:, -2:] = np.array([_MODERATE, _STRONG]) * (1 - _BLUNTED * tolerance)[:, None]
    help_ *= world.effect
    untreated = _BASE + _BY_SEVERITY * severity + _BY_TOLERANCE * tolerance
    strength = np.concatenate([[0.0], np.full(mild.size, 0.4), [0.7, 1.0]])
    liked = -_SHARPNESS * (strength - severity[:, None]) ** 2
    liked[:, mild] += fits
    chosen = np.exp(liked)
    chosen /= chosen.sum(axis=1, keepdims=True)
    rises, falls = np.zeros(world.n_actions), np.zeros(world.n_actions)
    rises[-2:] = np.array([0.5, 1.0]) * world.buildup
    falls[0], falls[mild] = 1.0, _CALM
    start = (risen == 0) / (risen == 0).sum()
    tables = _Tables(
        start=start,
        logging=(1 - world.overlap) * chosen + world.overlap / world.n_actions,
        loss=untreated[:, None] * (1 - help_),
        sicker=np.broadcast_to(_RISE + _RISE_BY_TOLERANCE * tolerance[:, None], help_.shape).copy(),
        better=_FALL + _FALL_BY_HELP * help_,
        more=rises,
        less=falls,
    )
    for array in vars(tables).values():
        array.flags.writeable = False
    return tables


def _moved(up: Floats, down: Floats, uniform: Floats) -> Ints:
    """1 up, -1 down or 0, by a uniform number."""
    return (uniform < up).astype(np.int64) - (uniform >= 1 - down)
