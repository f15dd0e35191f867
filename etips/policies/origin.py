"""What a policy remembers of the log it learned from: aggregates over at least eleven people."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from etips.data.trajectories import Trajectories
from etips.disclosure import hide_together, shown_parts
from etips.evaluation.inference.checks import code_ids


@dataclass(frozen=True)
class Origin:
    """How often each action was taken, and what came of it, where a policy was learned.

    Args:
        action_shares: Share of the decisions by action; None where that would tell of a few.
        mean_loss: Of the logged actions; None likewise.
    """

    action_shares: tuple[float | None, ...]
    mean_loss: float | None

    @classmethod
    def of(cls, stays: Trajectories) -> Self:
        """That of a log."""
        action, k = stays.logged_action, stays.n_actions
        counts = np.bincount(action, minlength=k)
        ids, code = code_ids(stays.cluster)
        people = np.unique(action * ids.size + code) // ids.size  # the action of each pair
        hidden = hide_together(np.bincount(people, minlength=k), counts)
        total = max(int(counts.sum()), 1)
        shares = tuple(
            None if gone else float(n / total) for n, gone in zip(counts, hidden, strict=True)
        )
        loss = stays.logged_loss
        loss = loss[~np.isnan(loss)]
        mean = float(loss.mean()) if loss.size else None
        if np.isin(loss, (0, 1)).all():  # times the decisions it is a count of events
            events, _ = shown_parts(int(loss.sum()), loss.size - int(loss.sum()))
            mean = None if events is None else mean
        return cls(shares, mean)

    def to_json(self) -> dict[str, object]:
        """As a manifest holds it."""
        return {"action_shares": list(self.action_shares), "mean_loss": self.mean_loss}

    @classmethod
    def from_json(cls, document: object, n_actions: int) -> Self:
        """What `to_json` gave; a ValueError, TypeError or KeyError if it is not."""
        told: Any = document
        shares = tuple(None if own is None else float(own) for own in told["action_shares"])
        loss = None if told["mean_loss"] is None else float(told["mean_loss"])
        numbers = [own for own in (*shares, loss) if own is not None]
        if len(shares) != n_actions or not np.isfinite(numbers).all():
            raise ValueError("the shares of actions are not those of a log")
        return cls(shares, loss)
