"""What may be said of a policy against the clinicians: one word for page, table and terminal.

"Better" without more is said of a whole stay only: where a stay is one decision, or where whole
stays were looked at and showed a gain too. Every word depends on the verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from etips.results.records import DataSummary, FeatureStrength, GainResult, MethodResult

NOT_LOOKED = "the whole stay was not looked at (--whole-stay)"
DISAGREES = "the whole-stay estimate does not agree"
CANNOT_TELL = "over the whole stay the log cannot tell"

Kind = Literal["better", "partly", "none", "worse", "doubtful", "unusable", "unknown"]
"""What a page colours by. Only the first four rest on a log that can carry the number."""

_SURELY = 3.0
"""Standard errors above zero at which a risk is called worse. One policy in 740 gets there by
chance, so that of twenty tried together one in twenty times any does, as with "better"."""


@dataclass(frozen=True)
class Conclusion:
    """What was found of a policy, verdict included: a kind for the colour, and a few words."""

    kind: Kind
    words: str


KINDS: tuple[tuple[Kind, str, str], ...] = (
    ("better", "better", "A lower risk than the clinicians' is shown, and the log carries it."),
    (
        "partly",
        "better in part",
        "A lower risk is shown where one decision is changed; over a whole stay it is not, or not "
        "surely.",
    ),
    (
        "none",
        "no difference shown",
        "The log carries the number, and it may be the clinicians'. That is no proof of equality.",
    ),
    ("worse", "worse", "A higher risk than the clinicians' is shown, and the log carries it."),
    ("doubtful", "doubtful", "A question, not an answer: the reasons say what is missing."),
    ("unusable", "unusable", "The log cannot tell, whatever the number looks like."),
    ("unknown", "not known", "There is no number, or it would give a few people away."),
)
"""Every kind, its short name and what it means, in the order of the legend."""


def conclude(method: MethodResult, data: DataSummary) -> Conclusion:
    """What the results say of a policy against the clinicians."""
    gain = method.gain
    if method.verdict == "unusable":
        return Conclusion("unusable", "unusable")
    if method.verdict is None or gain is None or gain.difference is None:
        return Conclusion("unknown", "not known")
    shown = bool(gain.better or gain.better_at_one_decision)
    if method.in_sample:
        return Conclusion("doubtful", "in sample, shows nothing")
    if method.verdict == "doubtful":
        worse = "seems worse" if _is_higher(gain) else "no difference shown"
        return Conclusion("doubtful", f"{'seems better' if shown else worse}, doubtful")
    if not shown and _is_higher(gain):
        return Conclusion("worse", "worse")
    if not shown:
        return Conclusion("none", "no difference shown")
    if doubt_of(method, data) is None:
        return Conclusion("better", "better")
    sure = "better, doubtful over the stay" if gain.better else "better at one decision"
    return Conclusion("partly", sure)


def better_words(method: MethodResult, data: DataSummary) -> str:
    """Whether a policy is better than the clinicians, in a phrase; its verdict has a say."""
    gain = method.gain
    if gain is None or gain.better is None:
        return "not known to be better"
    if not (gain.better or gain.better_at_one_decision):
        if method.verdict != "reliable" or method.in_sample:
            return "not shown to be better"
        return "worse" if _is_higher(gain) else "no difference shown"
    where = "" if data.one_decision or gain.better else " at one decision"
    if method.in_sample:
        return f"better{where} on stays it learned from, which shows nothing"
    if method.verdict != "reliable":
        return f"better{where} only were it not {method.verdict}"
    doubt = doubt_of(method, data)
    return f"better{where}; {doubt}" if doubt else f"better{where}"


def doubt_of(method: MethodResult, data: DataSummary) -> str | None:
    """Why a gain at one decision is not called a gain, or a gain over the stay not a sure one."""
    whole = method.whole_stay
    if data.one_decision:
        return None
    if whole is None:
        return NOT_LOOKED
    if method.gain is None or not method.gain.better:
        return CANNOT_TELL if whole.verdict == "unusable" else DISAGREES
    return None if whole.verdict == "reliable" else f"over the whole stay it is {whole.verdict}"


def _is_higher(gain: GainResult) -> bool:
    """Whether a risk lies above the clinicians' by more than chance explains."""
    if gain.difference is None or gain.low is None:
        return False
    return gain.low > 0 and gain.difference >= _SURELY * (gain.std_error or 0.0)


def compare_strength(gamma: float, features: Sequence[FeatureStrength]) -> str | None:
    """What a hidden factor of strength `gamma` would be like, in words; None if nothing is known.

    Args:
        features: Single ones by falling strength, then the strongest together.
    """
    if not features:
        return None
    enough = [feature for feature in features if feature.gamma >= gamma]
    alone = [feature for feature in enough if len(feature.names) == 1]
    if alone:
        return f"A hidden factor as strong as {_name(alone[-1])} would be enough"
    if enough:
        return f"The hidden factor would have to be as strong as {_name(enough[0])}"
    strongest = max(features, key=lambda feature: feature.gamma)
    return f"The hidden factor would have to be stronger than {_name(strongest)}"


def _name(feature: FeatureStrength) -> str:
    *first, last = feature.names
    words = f"{', '.join(first)} and {last} together" if first else last
    return f"{words} (odds ratio {feature.gamma:.2f})"
