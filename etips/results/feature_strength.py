"""How strong recorded features are, to hold a hidden one against."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FeatureStrength:
    """How much the odds of the actions taken hang on some features.

    Args:
        names: The features that are left out together.
        gamma: The factor by which the odds change without them, at 95 in 100 decisions at most.
    """

    names: tuple[str, ...]
    gamma: float


def compare_strength(gamma: float, features: Sequence[FeatureStrength]) -> str | None:
    """What a hidden factor of strength `gamma` would be like, in words; None if nothing is known.

    Args:
        gamma: Of the hidden factor.
        features: Single ones by falling strength, then the strongest together.
    """
    if not features:
        return None
    alone = [feature for feature in features if len(feature.names) == 1]
    enough = [feature for feature in alone if feature.gamma >= gamma]
    together = [feature for feature in features if len(feature.names) > 1]
    if enough:
        return f"A hidden factor as strong as {_name(enough[-1])} would be enough"
    for group in together:
        if group.gamma >= gamma:
            return f"The hidden factor would have to be as strong as {_name(group)}"
    strongest = max(features, key=lambda feature: feature.gamma)
    return f"The hidden factor would have to be stronger than {_name(strongest)}"


def _name(feature: FeatureStrength) -> str:
    *first, last = feature.names
    words = f"{', '.join(first)} and {last} together" if first else last
    return f"{words} (odds ratio {feature.gamma:.2f})"
