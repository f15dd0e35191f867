"""How data that a policy is judged on differ from those it learned from, as JSON holds it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Distance = Literal["near", "moved", "far"]
"""How far the judged data are from those learned from."""


@dataclass(frozen=True)
class FeatureShift:
    """One feature.

    Args:
        name: Of the feature.
        difference: Mean here minus mean there, in standard deviations (of the logarithm, where that
            is what the policy reads).
        spread: Standard deviation here over that there.
    """

    name: str
    difference: float
    spread: float


@dataclass(frozen=True)
class ActionShift:
    """One action.

    Args:
        name: Of the action.
        there: Share of the decisions where the policy was learned; None is hidden.
        here: The same in the judged data.
        expected: Share here had the clinicians of there treated these patients.
    """

    name: str
    there: float | None
    here: float | None
    expected: float | None


@dataclass(frozen=True)
class ShiftResult:
    """The shift between two sources.

    Args:
        policy: Whose it is.
        there: Where it was learned, in words of the data.
        here: Where it is judged.
        features: Those that differ most, the largest first.
        n_features: Compared.
        n_apart: By more than a quarter of a standard deviation.
        unlike: Share of the decisions with a feature beyond four standard deviations of there.
        actions: Each of them.
        practice: Share of decisions that would have to change for the actions here to be as often
            taken as the clinicians of there would on the same patients; None if nobody fitted them.
        log_loss_there: Of the logged actions by the clinicians of there, less is nearer.
        log_loss_here: By those fitted here.
        loss_there: Mean logged loss where it was learned; None is hidden.
        loss_here: The same here.
        distance: All of it in a word.
        sentences: What follows for the estimate.
    """

    policy: str
    there: Mapping[str, str]
    here: Mapping[str, str]
    features: tuple[FeatureShift, ...]
    n_features: int
    n_apart: int
    unlike: float | None
    actions: tuple[ActionShift, ...]
    practice: float | None
    log_loss_there: float | None
    log_loss_here: float | None
    loss_there: float | None
    loss_here: float | None
    distance: Distance
    sentences: tuple[str, ...]
