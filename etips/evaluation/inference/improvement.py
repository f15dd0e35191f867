"""Is a policy safely better than the clinicians? Corrected for how many are asked."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from etips.errors import DataError, require
from etips.evaluation.inference.checks import Floats, check_share
from etips.evaluation.inference.contrast import Contrast


@dataclass(frozen=True)
class Improvement:
    """The answer for one policy of a study.

    Args:
        policy: Its name.
        difference: Its risk minus the clinicians'.
        p_value: For this policy alone, see `Contrast`.
        adjusted_p: The same after Holm's correction for all policies of the study.
        better: Whether "its risk is below the clinicians'" holds at the study's level.
    """

    policy: str
    difference: float
    p_value: float
    adjusted_p: float
    better: bool


def safe_improvement(
    gains: Mapping[str, Contrast], *, alpha: float = 0.05
) -> tuple[Improvement, ...]:
    """Which policies have a risk below the clinicians', at most `alpha` chance of any false yes.

    Pass every policy that was tried, not the winners only: Holm's correction counts them. The gains
    must come from stays that took no part in learning or selection (`require_unseen`).

    Args:
        gains: For each policy, `difference(estimate, logged_risk(...))`.
        alpha: Chance of one or more false yeses in the whole study.
    """
    check_share("alpha", alpha)
    if not gains:
        raise DataError("gains", "must hold at least one policy")
    names = list(gains)
    p_values = np.array([gains[name].p_value for name in names])
    adjusted = holm(p_values)
    return tuple(
        Improvement(name, gains[name].difference, float(p), float(a), bool(a <= alpha))
        for name, p, a in zip(names, p_values, adjusted, strict=True)
    )


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down adjustment of p-values, shape (m,); valid under any dependence."""
    raw = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(raw, kind="stable")
    stepped = raw[order] * (raw.size - np.arange(raw.size))
    adjusted = np.empty_like(raw)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


def require_unseen(cluster: ArrayLike, selected_on: ArrayLike) -> None:
    """Refuse an evaluation on stays that were used to learn or select the policy.

    Args:
        cluster: Stay or patient of each decision of the evaluation, shape (n,).
        selected_on: Stays or patients used before, any number.
    """
    require(
        "cluster",
        "must not have been used for selection",
        np.isin(np.asarray(cluster), np.asarray(selected_on), invert=True),
        fix="Evaluate on held-out stays.",
    )
