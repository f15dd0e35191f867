"""Stated against observed propensities, as results hold them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CalibrationBin:
    """Pairs of decision and action whose stated propensity is alike.

    Args:
        stated: Their mean propensity.
        observed: How often the action was taken.
        std_error: Of the difference, by stay.
        n_pairs: How many they are.
    """

    stated: float | None
    observed: float | None
    std_error: float | None
    n_pairs: int | None


@dataclass(frozen=True)
class CalibratedAction:
    """How often an action was said to be taken, and was; None where it would count a few people.

    Args:
        name: Of the action.
        stated: Its mean propensity.
        observed: Its share of the decisions.
        std_error: Of their difference, by stay.
    """

    name: str
    stated: float | None
    observed: float | None
    std_error: float | None


@dataclass(frozen=True)
class Calibration:
    """Stated against observed propensity.

    Args:
        used: Whether the estimates used these propensities, not others that are known.
        bins: Ten, rising.
        error: Mean absolute difference.
        gap: Largest difference that is not noise.
        accuracy: How often the likeliest action was taken.
        log_loss: Mean surprise at what was done.
        actions: Action by action; pooled bins cannot tell one from another.
        frequency_log_loss: The surprise, had the plain frequencies of the actions been stated.
    """

    used: bool
    bins: tuple[CalibrationBin, ...]
    error: float
    gap: float
    accuracy: float
    log_loss: float
    actions: tuple[CalibratedAction, ...] = ()
    frequency_log_loss: float | None = None
