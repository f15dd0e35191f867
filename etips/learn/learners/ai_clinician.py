"""The AI Clinician: states by k-means, care by counting, its best policy by iteration."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from etips.data.decisions import Bools, Floats, Ints
from etips.data.scale import Scaler
from etips.data.trajectories import Trajectories
from etips.disclosure import LEAST_PEOPLE
from etips.errors import SettingError, require_number, require_seed, require_whole
from etips.evaluation.whole_stay_course import Outcome, require_outcome
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.learner import Fit, Learner
from etips.learn.learners.row_learner import frame_of, require_log
from etips.learn.nuisance.outcome import is_share
from etips.models.row_model import nearest
from etips.policies.policy import FittedPolicy

MAX_CLUSTERED_ROWS = 30_000
"""Centres are looked for among no more distinct rows than this, drawn by the seed."""

MAX_IMPROVEMENTS = 200
"""Most improvements of a policy; tens are the rule."""

BLOCK = 8192
"""Rows that are compared with all centres at once."""


@dataclass(kw_only=True, eq=False)
class AIClinician(Learner):
    """The AI Clinician (Komorowski et al. 2018): a policy for whole stays.

    The last visible step of a patient is one of `n_states` states, found by k-means. What follows
    an action in a state is counted; actions taken there too rarely are left out; policy iteration
    finds the policy of least discounted outcome, +1 for the worst and -1 for the best, at the end
    of the stay. It looks at the present alone, and believes its counts: with few stays the best
    action of a state is often the luckiest, which `rare` and `prior` hold back.

    Args:
        n_states: Groups at most; fewer where each could not hold eleven patients.
        rare: Actions taken at most so often in a state are left out of it; 5 as published.
        prior: Decisions of its state that stand beside those of an action; 0 as published.
        discount: Of what comes a decision later.
        outcome: Of a stay: the last of its losses (death, say), or their sum.
        seed: Of the groups.
    """

    n_states: int = 750
    rare: int = 12
    prior: float = 10.0
    discount: float = 0.99
    outcome: Outcome = "last"
    seed: int = 0

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:  # noqa: ARG002
        self._check(stays)
        rows, frame = frame_of(stays, "last")
        centres, state = self._states(rows.numpy(), stays)
        model = CareModel.count(
            state,
            stays.logged_action,
            self._costs(stays),
            stays.decisions().stay,
            n_states=len(centres),
            n_actions=stays.n_actions,
            prior=self.prior,
        )
        allowed = model.open_actions(self.rare)
        _, costs = model.iterate_policy(allowed, self.discount)
        forbidden = float(np.abs(costs).max()) + 1.0
        usual = np.log((model.taken + 0.5) / (model.taken + 0.5).sum(axis=1, keepdims=True))
        phase = np.zeros(len(centres))
        table = replace(frame, form="nearest", basis=centres, phase=phase, weight=usual[None])
        policy = FittedPolicy(
            kind="least amount",
            schema=stays.schema,
            scaler=Scaler(log=stays.schema.logarithms).fit(stays),
            propensity=table,
            networks=replace(table, weight=np.where(allowed, costs, forbidden)[None]),
        )
        return Fit(policy)

    def _states(self, rows: NDArray[np.float32], stays: Trajectories) -> tuple[Floats, Ints]:
        """Centres of at least eleven patients each, and the state of every decision."""
        unit = stays.cluster
        most = max(1, len(np.unique(unit)) // LEAST_PEOPLE)
        centres = find_centres(rows, min(self.n_states, most), seed=self.seed)
        pairs = np.unique(np.column_stack([assign(rows, centres), unit]), axis=0)
        patients = np.bincount(pairs[:, 0], minlength=len(centres))
        kept = patients >= min(LEAST_PEOPLE, int(patients.max()))
        return centres[kept], assign(rows, centres[kept])

    def _costs(self, stays: Trajectories) -> Floats:
        """What each decision adds to the outcome of its stay."""
        loss, stay = stays.logged_loss, stays.decisions().stay
        if self.outcome == "sum":
            return loss
        last = np.append(stay[1:] != stay[:-1], True)
        centre = 0.5 if is_share(stays) else float(loss[last].mean())
        return np.where(last, 2 * (loss - centre), 0.0)

    def _check(self, stays: Trajectories) -> None:
        require_seed(self.seed)
        require_whole("n_states", self.n_states, least=1)
        require_whole("rare", self.rare, least=0)
        for name in ("discount", "prior"):
            require_number(name, getattr(self, name))
        if not 0 <= self.prior < np.inf:
            raise SettingError("prior", "must be finite and not negative")
        if not 0 <= self.discount < 1:
            raise SettingError("discount", "must be in [0, 1)")
        require_outcome(self.outcome)
        require_log(stays)


def find_centres(rows: NDArray[np.float32], n_centres: int, *, seed: int) -> Floats:
    """Centres of groups of rows, shape (at most n_centres, d).

    Where there are no more distinct rows than centres, the distinct rows are the centres.
    """
    if not rows.shape[1]:
        return np.zeros((1, 0))
    distinct, count = np.unique(rows + np.float32(0), axis=0, return_counts=True)  # -0 is 0
    if len(distinct) <= n_centres:
        return np.asarray(distinct, np.float64)
    rng = np.random.default_rng([seed, n_centres])
    some = np.sort(rng.permutation(len(distinct))[:MAX_CLUSTERED_ROWS])
    groups = KMeans(n_centres, n_init=1, random_state=int(rng.integers(2**31)))
    with threadpool_limits(1):  # sums in one order, whatever the number of cores
        groups.fit(distinct[some].astype(np.float64), sample_weight=count[some])
    return np.asarray(groups.cluster_centers_, np.float64)


def assign(rows: NDArray[np.floating], centres: Floats) -> Ints:
    """The nearest centre of each row, shape (n,)."""
    blocks = np.array_split(np.asarray(rows, np.float64), max(len(rows) // BLOCK, 1))
    return np.concatenate([nearest(block, centres) for block in blocks])


@dataclass(frozen=True, eq=False)
class CareModel:
    """What followed each action in each state, by counting; what ends a stay leads nowhere.

    Args:
        taken: How often each action was taken, shape (S, K).
        cost: Mean cost of it, shape (S, K).
        origin: State and action, as s * K + a, of each kind of move, shape (m,).
        target: The state that it leads to, shape (m,).
        chance: How likely it is, given where it starts, shape (m,).
        prior: Decisions of its state, whatever was done in them, that stand beside those of an
            action, so that a rare one is not the best or the worst by luck.
    """

    taken: Ints
    cost: Floats
    origin: Ints
    target: Ints
    chance: Floats
    prior: float = 0.0

    @classmethod
    def count(
        cls,
        state: Ints,
        action: Ints,
        cost: Floats,
        stay: Ints,
        *,
        n_states: int,
        n_actions: int,
        prior: float = 0.0,
    ) -> "CareModel":
        """From logged decisions, each of shape (n,), stay after stay in the order of time."""
        place = state * n_actions + action
        taken = np.bincount(place, minlength=n_states * n_actions)
        total = np.bincount(place, cost, n_states * n_actions)
        goes_on = np.flatnonzero(stay[:-1] == stay[1:])
        moves = place[goes_on] * n_states + state[goes_on + 1]
        kinds, times = np.unique(moves, return_counts=True)
        origin, target = np.divmod(kinds, n_states)
        shape = (n_states, n_actions)
        mean = (total / np.maximum(taken, 1)).reshape(shape)
        return cls(taken.reshape(shape), mean, origin, target, times / taken[origin], prior)

    def open_actions(self, rare: int) -> Bools:
        """Actions taken more than `rare` times in a state; the most usual one where none was."""
        allowed = self.taken > rare
        none = ~allowed.any(axis=1)
        allowed[none, self.taken[none].argmax(axis=1)] = True
        return allowed

    def look_ahead(self, value: Floats, discount: float) -> Floats:
        """Cost of each action in each state, given what states are worth, shape (S, K)."""
        after = np.bincount(self.origin, self.chance * value[self.target], self.cost.size)
        return self._shrunken(self.cost + discount * after.reshape(self.cost.shape))

    def value_of(self, policy: Ints, discount: float) -> Floats:
        """Discounted cost from each state on under a policy, solved exactly, shape (S,)."""
        n_states, n_actions = self.cost.shape
        rows = np.arange(n_states)
        state, action = np.divmod(self.origin, n_actions)
        of_policy, of_state = np.zeros((n_states, n_states)), np.zeros((n_states, n_states))
        used = policy[state] == action
        of_policy[state[used], self.target[used]] = self.chance[used]
        share = self.taken.ravel()[self.origin] / np.maximum(self.taken.sum(axis=1), 1)[state]
        np.add.at(of_state, (state, self.target), share * self.chance)
        trust = self._trust()[rows, policy][:, None]
        under = trust * of_policy + (1 - trust) * of_state
        cost = self._shrunken(self.cost)[rows, policy]
        return np.asarray(np.linalg.solve(np.eye(n_states) - discount * under, cost))

    def _trust(self) -> Floats:
        """How much an action's own decisions count beside those of its state, shape (S, K)."""
        total = self.taken + self.prior
        trust: Floats = np.where(total > 0, self.taken / np.maximum(total, 1e-300), 1.0)
        return trust

    def _shrunken(self, values: Floats) -> Floats:
        """Values (S, K), drawn to the mean of their state over all that was done in it."""
        trust = self._trust()
        mean = (self.taken * values).sum(axis=1) / np.maximum(self.taken.sum(axis=1), 1)
        return np.asarray(trust * values + (1 - trust) * mean[:, None])

    def iterate_policy(self, allowed: Bools, discount: float) -> tuple[Ints, Floats]:
        """The policy of least discounted cost among allowed actions, and what each action costs.

        A policy is valued and improved in turn until nothing is gained (Howard 1960).
        """
        policy = np.where(allowed, self.taken, -1).argmax(axis=1)
        rows = np.arange(len(policy))
        costs = self.cost
        for _ in range(MAX_IMPROVEMENTS):
            costs = self.look_ahead(self.value_of(policy, discount), discount)
            best = np.where(allowed, costs, np.inf).argmin(axis=1)
            gains = costs[rows, best] < costs[rows, policy] - 1e-10
            if not gains.any():
                break
            policy = np.where(gains, best, policy)
        return policy, costs
