"""Hidden confounding: how strong something unseen would have to be to explain the gain away."""

from etips.report.plots import band
from etips.report.section import Section
from etips.report.wording import clean, number
from etips.results.feature_strength import FeatureStrength
from etips.results.results import MethodResult, Results


def _make(results: Results) -> dict[str, object] | None:
    head = results.headline
    sensitivity = None if head is None else head.sensitivity
    if head is None or sensitivity is None or not sensitivity.bounds:
        return None
    label = (
        f"{clean(head.name)}: bounds of the risk under hidden confounding, verdict {head.verdict}"
    )
    return {
        "main": head,
        "figure": band(sensitivity.bounds, results.data.mean_loss, label),
        "rows": [
            (
                method,
                _undoing(method, method.sensitivity.gamma_point),
                _undoing(method, method.sensitivity.gamma_interval),
            )
            for method in results.methods
            if method.sensitivity
        ],
        "features": [(_names(feature), feature.gamma) for feature in sensitivity.features],
        "sharp": sensitivity.balanced,
    }


SECTION = Section("sensitivity", "Hidden confounding", "confounding.html", _make)


def _names(feature: FeatureStrength) -> str:
    """One feature, or several together."""
    *first, last = (clean(own, 40) for own in feature.names)
    return f"{', '.join(first)} and {last} together" if first else last


def _undoing(method: MethodResult, gamma: float | None) -> str:
    """The odds ratio that could undo the gain, in words."""
    gain = None if method.gain is None else method.gain.difference
    if gain is None:
        return "not known"
    if gain >= 0:
        return "no gain"
    return "over 1000" if gamma is None else number(gamma, 2)
