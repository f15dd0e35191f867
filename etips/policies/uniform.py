"""What a policy without a preference recommends."""

import numpy as np

from etips.data.decisions import Ints


def draw_actions(seed: int, n_actions: int, n_decisions: int) -> Ints:
    """Any action, the same for the same seed, shape (n_decisions,)."""
    return np.random.default_rng(seed).integers(n_actions, size=n_decisions)
