"""d3rlpy: stays as its data set, and its algorithms as policies that are evaluated like any other.

d3rlpy (`pip install etips[rl]`) has the sequential methods that were used for sepsis, such as the
dueling double DQN of Raghu et al. (2017); none of them is written again here.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etips.data.decisions import Floats, Ints
from etips.data.schema import Schema
from etips.data.tables.arrays import as_trajectories
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.evaluation.whole_stay_course import Outcome, require_outcome
from etips.models.row_model import rows_of, spread_of, standardise


class Episodes(NamedTuple):
    """Decisions of stays one after another, as d3rlpy takes them.

    Args:
        observations: Standardised summary of each history, shape (n, d).
        actions: Shape (n, 1).
        rewards: Minus the loss, or minus the last loss at a stay's end, shape (n, 1).
        terminals: 1 at the last decision of a stay, shape (n,).
    """

    observations: NDArray[np.float32]
    actions: Ints
    rewards: NDArray[np.float32]
    terminals: NDArray[np.float32]


class Algorithm(Protocol):
    """What a d3rlpy algorithm offers once it is fitted."""

    def predict(self, x: NDArray[np.float32]) -> NDArray[Any]:
        """The action of each observation."""


def episodes_of(data: Trajectories, *, outcome: Outcome = "sum") -> Episodes:
    """The decisions of logged stays as episodes.

    Args:
        outcome: Of a stay: the sum of its losses, each a step's reward, or the last of them.
    """
    require_outcome(outcome)
    if not data.logged or not data.n_decisions:
        raise DataError("data", "must hold at least one decision")
    stay, loss = data.decisions().stay, data.logged_loss
    last = np.append(stay[1:] != stay[:-1], True)
    reward = -loss if outcome == "sum" else np.where(last, -loss, 0.0)
    rows = rows_of(data, "summary")
    return Episodes(
        standardise(rows, *spread_of(rows)).astype(np.float32),
        data.logged_action[:, None].copy(),
        reward.astype(np.float32)[:, None],
        last.astype(np.float32),
    )


def to_d3rlpy(data: Trajectories, *, outcome: Outcome = "sum") -> Any:  # noqa: ANN401  # theirs
    """Logged stays as an `MDPDataset`, by `episodes_of`."""
    try:
        import d3rlpy  # noqa: PLC0415  # large, and optional
    except ImportError as error:
        fix = 'Install it: pip install "etips[rl]".'
        raise SettingError("to_d3rlpy", "needs d3rlpy", fix=fix) from error
    own = episodes_of(data, outcome=outcome)
    return d3rlpy.dataset.MDPDataset(
        *own,
        action_space=d3rlpy.constants.ActionSpace.DISCRETE,
        action_size=data.n_actions,
    )


class D3rlpyPolicy:
    """A fitted d3rlpy algorithm as a policy: `etips.evaluate(D3rlpyPolicy(algo, train), test)`.

    It has no floor on support and never abstains. Save the algorithm by d3rlpy's own means.

    Args:
        algorithm: Fitted to `to_d3rlpy(data)`.
        data: Those stays: others are standardised as they were.
    """

    def __init__(self, algorithm: Algorithm, data: Trajectories) -> None:
        self.algorithm = algorithm
        self.schema: Schema = data.schema
        self.mean, self.scale = spread_of(rows_of(data, "summary"))

    def predict(self, data: Trajectories | ArrayLike, **arrays: Any) -> Ints:  # noqa: ANN401
        """The recommended action of each decision, shape (n_decisions,)."""
        stays = as_trajectories(data, **arrays)
        for name in ("sequence", "static", "lag"):
            if getattr(stays.schema, name) != getattr(self.schema, name):
                raise DataError(f"data, {name}", "is not as in the data the policy was fitted on")
        if not stays.n_decisions:
            return np.zeros(0, np.int64)
        rows = standardise(rows_of(stays, "summary"), self.mean, self.scale).astype(np.float32)
        action: Ints = np.asarray(self.algorithm.predict(rows)).reshape(-1).astype(np.int64)
        return action

    def predict_proba(self, data: Trajectories | ArrayLike, **arrays: Any) -> Floats:  # noqa: ANN401
        """One for the recommended action, shape (n_decisions, n_actions)."""
        return np.eye(self.schema.n_actions)[self.predict(data, **arrays)]
