"""A small ward with known truth, for tests of intervals and verdicts.

Patients stand in one of 24 contexts; five actions; the loss is 0 or 1. Everything is a finite
table, so the risk of any policy is a sum, not a simulation. The policy under test takes the best
action of each context. Clinicians like that action in some contexts and avoid it in others, the
sicker ones; `overlap` is the share of purely random choice mixed into what they do.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from etips.evaluation import Log

N_CONTEXTS, N_ACTIONS = 24, 5
CONTEXTS = np.arange(N_CONTEXTS)


@dataclass(frozen=True)
class Ward:
    """One world.

    Args:
        seed: Draws the tables.
        overlap: Share of random choice in the logging policy.
        risk: True risk of the policy under test.
        per_stay: Decisions in a stay.
        reluctance: How strongly the clinicians avoid the best action where they avoid it.
        effect: Size of the actions' effects; 0 is the null world, where no action matters.
        gamma: Odds ratio of hidden confounding; 1 for none.
        frailty: How much the stays differ in risk, which ties the decisions of one together.
    """

    seed: int = 0
    overlap: float = 0.3
    risk: float = 0.5
    per_stay: int = 1
    reluctance: float = 0.5
    effect: float = 1.0
    gamma: float = 1.0
    frailty: float = 0.7

    @cached_property
    def best(self):
        return np.random.default_rng([self.seed, 1]).integers(0, N_ACTIONS, N_CONTEXTS)

    @cached_property
    def policy(self):
        """The policy under test: (context, action) to probability, all 0 or 1."""
        return np.eye(N_ACTIONS)[self.best]

    @cached_property
    def agreement(self):
        """How much the clinicians like the best action, falling with severity."""
        return np.linspace(8, -self.reluctance, N_CONTEXTS)

    @cached_property
    def propensities(self):
        """The logging policy as the log shows it: (context, action) to probability."""
        scores = np.random.default_rng([self.seed, 2]).normal(0, 1, (N_CONTEXTS, N_ACTIONS))
        scores[CONTEXTS, self.best] = self.agreement
        habit = np.exp(scores - scores.max(axis=1, keepdims=True))
        habit /= habit.sum(axis=1, keepdims=True)
        return (1 - self.overlap) * habit + self.overlap / N_ACTIONS

    @cached_property
    def hidden_propensities(self):
        """The true logging policy given the hidden state: (state, context, action), 2 states.

        State 1 has better outcomes and receives the best action more often, by as much as an odds
        ratio of gamma allows in both directions.
        """
        liked = self.propensities[CONTEXTS, self.best]
        odds = liked / (1 - liked)
        up = odds * self.gamma / (1 + odds * self.gamma) - liked
        down = liked - odds / self.gamma / (1 + odds / self.gamma)
        shift = np.minimum(up, down)
        tables = []
        for sign in (-1, 1):
            table = self.propensities * (1 - sign * shift / (1 - liked))[:, None]
            table[CONTEXTS, self.best] = liked + sign * shift
            tables.append(table)
        return np.stack(tables)

    @cached_property
    def risks(self):
        """Risk by (frailty, hidden state, context, action)."""
        generator = np.random.default_rng([self.seed, 3])
        score = self.effect * generator.normal(0, 0.4, (N_CONTEXTS, N_ACTIONS))
        score[CONTEXTS, self.best] -= 0.6 * self.effect
        score += np.linspace(-0.5, 0.5, N_CONTEXTS)[:, None]
        frail = self.frailty * np.array([-1, 1])[:, None, None, None]
        hidden = (1.0 if self.gamma > 1 else 0.0) * np.array([1, -1])[None, :, None, None]
        middle = 0.0
        for _ in range(20):  # a fixed point: shift all scores until the policy's risk is as asked
            table = 1 / (1 + np.exp(-(score + frail + hidden + middle)))
            found = self.risk_of(self.policy, table)
            middle += np.log(self.risk / (1 - self.risk)) - np.log(found / (1 - found))
        return table

    @cached_property
    def mean_risks(self):
        """Risk by (context, action), over stays and hidden states."""
        return self.risks.mean(axis=(0, 1))

    def risk_of(self, policy, risks=None):
        """True risk of a (context, action) table of probabilities."""
        table = self.mean_risks if risks is None else risks.mean(axis=(0, 1))
        return float((policy * table).sum(axis=1).mean())

    @cached_property
    def logged_risk(self):
        """True risk of the clinicians."""
        seen = (self.hidden_propensities * self.risks.mean(axis=0)).sum(axis=2)
        return float(seen.mean())

    def draw(self, n_stays, *, seed):
        """Contexts, actions, losses and stays of `n_stays` stays."""
        generator = np.random.default_rng([self.seed, 4, seed])
        n = n_stays * self.per_stay
        stay = np.repeat(np.arange(n_stays), self.per_stay)
        usual = generator.integers(0, N_CONTEXTS, n_stays)[stay]
        context = np.where(generator.random(n) < 0.5, usual, generator.integers(0, N_CONTEXTS, n))
        frail = generator.integers(0, 2, n_stays)[stay]
        hidden = generator.integers(0, 2, n)
        steps = self.hidden_propensities.cumsum(axis=2)[hidden, context]
        action = (generator.random(n)[:, None] > steps).sum(axis=1).clip(max=N_ACTIONS - 1)
        loss = (generator.random(n) < self.risks[frail, hidden, context, action]).astype(float)
        return Draw(context, action, loss, stay)

    def log(self, n_stays, *, seed, full=True, predicted=None):
        """A log and the policy's probabilities at its decisions.

        Args:
            full: Whether the log holds the propensities of all actions.
            predicted: A (context, action) table of predicted losses for doubly robust estimates.
        """
        draw = self.draw(n_stays, seed=seed)
        return draw.log(self.propensities, full=full, predicted=predicted), self.policy[
            draw.context
        ]


@dataclass(frozen=True)
class Draw:
    """Raw decisions of a ward."""

    context: np.ndarray
    action: np.ndarray
    loss: np.ndarray
    stay: np.ndarray

    def log(self, propensities, *, full=True, predicted=None):
        """The log as seen with these propensities and predicted losses.

        Args:
            propensities: One row a context, which is what the clinicians did and known, or one row
                a decision, estimated from what is visible.
            full: Whether the log holds the propensities of all actions.
            predicted: As propensities.
        """
        table, known = self.by_decision(propensities), len(propensities) == N_CONTEXTS
        return Log(
            loss=self.loss,
            action=self.action,
            propensity=table[np.arange(self.loss.size), self.action],
            cluster=self.stay,
            n_actions=N_ACTIONS,
            propensities=table if full else None,
            predicted=None if predicted is None else self.by_decision(predicted),
            features=None if known else self.context[:, None],
            known=known,
        )

    def by_decision(self, table):
        """The row of `table` for each decision; a table by context is looked up."""
        return table[self.context] if len(table) == N_CONTEXTS else table
