"""What a policy does once somebody follows it: the thing that is evaluated."""

from typing import Literal, NamedTuple, Self

import numpy as np

from etips.data.decisions import Bools, Floats, Ints

Acts = Literal["likeliest", "draws"]
"""How a policy acts on its probabilities: it takes the likeliest action, or draws one of them."""


class Deployed(NamedTuple):
    """What a policy does at every decision.

    Args:
        probabilities: Of each action that it takes, shape (n_decisions, n_actions): one sure action
            where it takes the likeliest. Where it abstains, what it takes the clinicians to do.
        abstained: Where it leaves the decision to the clinicians, shape (n_decisions,).
    """

    probabilities: Floats
    abstained: Bools

    @classmethod
    def always(cls, probabilities: Floats) -> Self:
        """A policy that never abstains and draws its actions from these probabilities."""
        return cls(np.asarray(probabilities, np.float64), np.zeros(len(probabilities), bool))

    @property
    def judged(self) -> tuple[Floats, Bools | None]:
        """What `evaluation.view` and `assess` take: one that never abstains says nothing of it."""
        return self.probabilities, self.abstained if self.abstained.any() else None

    def left_to(self, clinicians: Floats) -> Floats:
        """The probabilities, those of the clinicians where it abstains, shape (n, n_actions)."""
        return np.where(self.abstained[:, None], clinicians, self.probabilities)


def as_deployed(policy: "Floats | Deployed") -> Deployed:
    """What a policy does; an array holds its probabilities, and it never abstains."""
    return policy if isinstance(policy, Deployed) else Deployed.always(policy)


def take_likeliest(probabilities: Floats, abstained: Bools) -> Deployed:
    """The likeliest action for sure, among equals the lowest, unless it abstains."""
    sure = np.eye(probabilities.shape[1])[probabilities.argmax(axis=1)]
    return Deployed(np.where(abstained[:, None], probabilities, sure), abstained)


def draw_from(seed: int, probabilities: Floats) -> Ints:
    """An action of each decision, drawn; the same for the same seed, shape (n_decisions,)."""
    chance = np.random.default_rng(seed).random(len(probabilities))
    below = probabilities.cumsum(axis=1)
    return np.asarray((below <= chance[:, None] * below[:, -1:]).sum(axis=1))
