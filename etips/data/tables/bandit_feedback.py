"""The feedback dictionary of obp (Open Bandit Pipeline), in and out.

Of real feedback (`OpenBanditDataset`) it holds `n_rounds`, `n_actions`, `action`, `position`,
`reward`, `pscore`, `context` and `action_context`; of synthetic one also `pi_b`, the probability of
every action at every position, and the expected reward.
"""

from collections.abc import Mapping
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from etips.data.decisions import Floats, Ints
from etips.data.tables.arrays import from_arrays, numeric
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require

Feedback = Mapping[str, ArrayLike | None]


def from_obp(feedback: Feedback, *, n_positions: int | None = None) -> Trajectories:
    """Trajectories from an obp feedback dictionary; its reward becomes loss = 1 - reward.

    A position is part of what is visible at a round: it becomes one column each of the features,
    behind the context. What describes the actions (`action_context`) has no place here.

    Args:
        feedback: Reads `context`, `action`, `reward`, and if there `position`, `pscore`,
            `n_actions` and `n_rounds`.
        n_positions: How many there are; one more than the largest if left out. Say it where not
            all may occur, lest two parts of a data set have different features.
    """
    for name in ("context", "action", "reward"):
        if feedback.get(name) is None:
            raise DataError(f"feedback, {name}", "must be there")
    context = numeric("feedback, context", cast(ArrayLike, feedback["context"]))
    _check_rounds(feedback, len(np.atleast_1d(context)))
    seen = _one_hot(_positions(feedback), n_positions)
    if seen.shape[1] > 1 and context.ndim == 2:
        context = np.concatenate([context, seen], axis=1)
    return from_arrays(
        context,
        feedback["action"],
        1.0 - numeric("feedback, reward", cast(ArrayLike, feedback["reward"])),
        propensity=feedback.get("pscore"),
        n_actions=cast("int | None", feedback.get("n_actions")),
    )


def obp_propensities(feedback: Feedback) -> Floats | None:
    """Known probability of every action (`pi_b`), for `etips.evaluate(propensities=...)`.

    Shape (n_rounds, n_actions), of each round's own position; None where the feedback has none.
    """
    if feedback.get("pi_b") is None:
        return None
    table = numeric("feedback, pi_b", cast(ArrayLike, feedback["pi_b"]))
    if table.ndim == 2:
        return table
    position = _positions(feedback)
    if table.ndim != 3 or len(table) != len(position):
        raise DataError("feedback, pi_b", "must have shape (n_rounds, n_actions, n_positions)")
    require("feedback, position", "must be a column of pi_b", position < table.shape[2])
    return table[np.arange(len(table)), :, position]


def to_obp(data: Trajectories) -> dict[str, ArrayLike | None]:
    """An obp feedback dictionary, one round a decision; reward = 1 - loss.

    The context is what a decision's last visible step and its stay's static features say; what came
    before it has no place in obp.
    """
    seen = data.sequence[data.seen_rows]
    context = np.concatenate([seen, data.static[data.decisions().stay]], axis=1)
    return {
        "n_rounds": data.n_decisions,
        "n_actions": data.n_actions,
        "context": context,
        "action": data.logged_action,
        "reward": 1.0 - data.logged_loss,
        "pscore": None if data.propensity is None else data.logged_propensity,
        "position": None,
    }


def _check_rounds(feedback: Feedback, n: int) -> None:
    said = feedback.get("n_rounds")
    if said is not None and said != n:
        raise DataError("feedback, n_rounds", "must be the number of rows of the context")


def _positions(feedback: Feedback) -> Ints:
    """Position of each round, shape (n_rounds,); 0 where there is no other."""
    n = len(np.atleast_1d(np.asarray(feedback["action"])))
    if feedback.get("position") is None:
        return np.zeros(n, np.int64)
    values = numeric("feedback, position", cast(ArrayLike, feedback["position"]))
    if values.shape != (n,):
        raise DataError("feedback, position", "must be one number a round")
    whole = (values >= 0) & (values == np.round(values)) & (values < 2**16)
    require("feedback, position", "must be whole and not negative", whole)
    return values.astype(np.int64)


def _one_hot(position: Ints, n_positions: int | None) -> Floats:
    top = int(position.max(initial=0)) + 1
    n = top if n_positions is None else n_positions
    if n < top:
        raise SettingError("n_positions", "must be more than every position")
    return np.asarray(position[:, None] == np.arange(n), np.float64)
