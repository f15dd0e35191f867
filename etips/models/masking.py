"""Actions that must not be taken, kept out of the networks' answers."""

from torch import Tensor

FORBIDDEN = -1e9
"""Logit of an action that must not be taken: its probability is zero in any precision."""


def forbid(logits: Tensor, allowed: Tensor) -> Tensor:
    """Logits in which an action that is not allowed has no probability.

    Args:
        logits: Shape (J, n, K).
        allowed: Shape (n, K).
    """
    return logits.masked_fill(~allowed, FORBIDDEN)
