"""One log of several sources: what weighs a decision is fitted in its own source alone.

Two hospitals treat the same patient differently, and no feature says which of them it was. What is
fitted on both together would be wrong in each.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.data.trajectories import Trajectories
from etips.errors import DataError
from etips.evaluation.log import Log
from etips.results.evaluation_log import EvaluationLog

Fit = Callable[[Trajectories], EvaluationLog]
"""What makes the log of one source."""


def join_logs(data: Trajectories, sources: NDArray[np.str_] | None, fit: Fit) -> EvaluationLog:
    """The log of stays of several sources, or of one.

    Args:
        data: The stays, those of one source one after the other, as `joining.join` gives them.
        sources: Of each stay, shape (n_stays,); None where there is but one.
        fit: Makes the log of one source.
    """
    if sources is None:
        return fit(data)
    runs = [label for label, _ in groupby(sources.tolist())]
    if sources.shape != (data.n_stays,) or len(set(runs)) != len(runs):
        raise DataError("sources", "must name the source of each stay, one source after the other")
    made = [fit(data.subset(sources == label)) for label in runs]
    logs = [own.log for own in made]
    joined = Log(
        loss=np.concatenate([log.loss for log in logs]),
        action=np.concatenate([log.action for log in logs]),
        propensity=np.concatenate([log.propensity for log in logs]),
        cluster=data.cluster,
        n_actions=logs[0].n_actions,
        propensities=_stacked(logs, "propensities"),
        predicted=_stacked(logs, "predicted"),
        propensity_floor=max(log.propensity_floor for log in logs),
        features=_stacked(logs, "features"),
        known=all(log.known for log in logs),
        lag=logs[0].lag,
        unbalanced=_stacked(logs, "unbalanced", instead="propensity"),
        unblended=_stacked(logs, "unblended", instead="predicted"),
    )
    notes = {f"{label}: {k}": v for label, own in zip(runs, made, strict=True)
             for k, v in own.notes.items()}  # fmt: skip
    return EvaluationLog(joined, notes, None)


def _stacked(logs: Sequence[Log], name: str, *, instead: str | None = None) -> NDArray[Any] | None:
    """An array of all logs; None where one has none, or, with `instead`, where none has any."""
    own = [getattr(log, name) for log in logs]
    if all(array is None for array in own) or (instead is None and any(a is None for a in own)):
        return None
    parts = [
        array if array is not None or instead is None else getattr(log, instead)
        for array, log in zip(own, logs, strict=True)
    ]
    return np.concatenate(parts)
