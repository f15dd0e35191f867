"""A model of care: states, actions and what follows, by counting; and its best policy."""

from dataclasses import dataclass

import numpy as np

from etips.data.decisions import Bools, Floats, Ints

ROUNDS = 200
"""Most improvements of a policy; tens are the rule."""


@dataclass(frozen=True, eq=False)
class CareModel:
    """What followed each action in each state; what ends a stay leads nowhere.

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
        """From logged decisions, stay after stay in the order of time.

        Args:
            state: Of each decision, shape (n,).
            action: Taken there, shape (n,).
            cost: Of it, shape (n,).
            stay: That it belongs to, shape (n,).
            n_states: How many states there are.
            n_actions: How many actions.
            prior: See the class.
        """
        place = state * n_actions + action
        taken = np.bincount(place, minlength=n_states * n_actions)
        total = np.bincount(place, cost, n_states * n_actions)
        goes_on = np.flatnonzero(stay[:-1] == stay[1:])
        moves = place[goes_on] * n_states + state[goes_on + 1]
        kinds, times = np.unique(moves, return_counts=True)
        origin, target = np.divmod(kinds, n_states)
        shape = (n_states, n_actions)
        return cls(
            taken=taken.reshape(shape),
            cost=(total / np.maximum(taken, 1)).reshape(shape),
            origin=origin,
            target=target,
            chance=times / taken[origin],
            prior=prior,
        )

    def open_actions(self, rare: int) -> Bools:
        """Actions taken more than `rare` times in a state; the most usual one where none was."""
        allowed = self.taken > rare
        none = ~allowed.any(axis=1)
        allowed[none, self.taken[none].argmax(axis=1)] = True
        return allowed

    def look_ahead(self, value: Floats, discount: float) -> Floats:
        """Cost of each action in each state, given what states are worth, shape (S, K)."""
        after = np.bincount(self.origin, self.chance * value[self.target], self.cost.size)
        own = self.cost + discount * after.reshape(self.cost.shape)
        return self._blend(own, self._mean(own))

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
        own = self._blend(self.cost, self._mean(self.cost))[rows, policy]
        return np.asarray(np.linalg.solve(np.eye(n_states) - discount * under, own))

    def _trust(self) -> Floats:
        """How much an action's own decisions count beside those of its state, shape (S, K)."""
        total = self.taken + self.prior
        trust: Floats = np.where(total > 0, self.taken / np.maximum(total, 1e-300), 1.0)
        return trust

    def _blend(self, own: Floats, of_state: Floats) -> Floats:
        trust = self._trust()
        blended: Floats = trust * own + (1 - trust) * of_state[:, None]
        return blended

    def _mean(self, own: Floats) -> Floats:
        """Of a state, over all that was done in it, shape (S,)."""
        mean: Floats = (self.taken * own).sum(axis=1) / np.maximum(self.taken.sum(axis=1), 1)
        return mean

    def iterate_policy(self, allowed: Bools, discount: float) -> tuple[Ints, Floats]:
        """The policy of least discounted cost among allowed actions, and what each action costs.

        A policy is valued and improved in turn until nothing is gained (Howard 1960).
        """
        policy = np.where(allowed, self.taken, -1).argmax(axis=1)
        rows = np.arange(len(policy))
        costs = self.cost
        for _ in range(ROUNDS):
            costs = self.look_ahead(self.value_of(policy, discount), discount)
            best = np.where(allowed, costs, np.inf).argmin(axis=1)
            gains = costs[rows, best] < costs[rows, policy] - 1e-10
            if not gains.any():
                break
            policy = np.where(gains, best, policy)
        return policy, costs
