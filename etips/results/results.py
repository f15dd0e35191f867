"""Results as data: what was evaluated, each policy's estimates, diagnosis, verdict and truth."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from etips.disclosure import shown_count, shown_parts
from etips.evaluation.assessment import Assessment
from etips.evaluation.improvement import Improvement
from etips.evaluation.sensitivity import Sensitivity


@dataclass(frozen=True)
class MethodResult:
    """One policy.

    Args:
        name: What it is called.
        assessment: Estimates, gain, diagnosis, verdict.
        truth: Its true risk, in simulated worlds.
        sensitivity: What hidden confounding could do to its risk and its gain.
        improvement: Whether it beats the clinicians, corrected for all policies evaluated together.
        notes: Where propensities and predicted losses came from.
    """

    name: str
    assessment: Assessment
    truth: float | None = None
    sensitivity: Sensitivity | None = None
    improvement: Improvement | None = None
    notes: Mapping[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        """A JSON-ready copy: numbers that are not finite become null."""
        found = self.assessment
        pair = shown_parts(found.matched.n_matched, found.matched.n_unmatched)
        size = shown_count(found.diagnostics.effective_sample_size)
        return {
            "name": self.name,
            "estimates": [
                {
                    "estimator": e.estimator,
                    "risk": _finite(e.risk),
                    "std_error": _finite(e.std_error),
                    "low": _finite(e.low),
                    "high": _finite(e.high),
                }
                for e in found.estimates
            ],
            "gain": {
                "difference": _finite(found.gain.difference),
                "std_error": _finite(found.gain.std_error),
                "low": _finite(found.gain.low),
                "high": _finite(found.gain.high),
                "adjusted_p": _finite(self.improvement.adjusted_p) if self.improvement else None,
                "better": self.improvement.better if self.improvement else None,
            },
            "atenp": {
                "difference": _finite(found.matched.difference),
                "n_matched": pair[0],
                "n_unmatched": pair[1],
            },
            "diagnostics": {
                "matching_factor": _finite(found.diagnostics.matching_factor.risk),
                "effective_sample_size": None if size is None else _finite(size),
                "n_matched": pair[0],
                "clipped_share": _finite(found.diagnostics.clipped_share),
                "max_weight": _finite(found.diagnostics.max_weight),
            },
            "verdict": found.verdict.label,
            "reasons": list(found.verdict.reasons),
            "truth": self.truth,
            "sensitivity": _bounds(self.sensitivity),
            "notes": dict(self.notes or {}),
        }


@dataclass(frozen=True)
class Results:
    """An evaluation of one or more policies on the same decisions.

    Args:
        data: What they were evaluated on: counts and names, no patient.
        methods: The policies, in the order given.
        seconds: How long it took.
        exhibits: What a report shows beyond the estimates, JSON-ready; see `exhibits`.
    """

    data: Mapping[str, object]
    methods: tuple[MethodResult, ...]
    seconds: float
    exhibits: Mapping[str, object] | None = None

    def to_json(self) -> dict[str, Any]:
        """The contract's results.json, without any count of 1 to 10."""
        data = _hide(self.data)
        methods = [method.to_json() for method in self.methods]
        if data.get("mean_loss", 0) is None:  # a gain and a risk would give it away
            methods = [{**m, "gain": dict.fromkeys(m["gain"])} for m in methods]
        return {
            "data": data,
            "methods": methods,
            "seconds": self.seconds,
            "exhibits": None if self.exhibits is None else dict(self.exhibits),
        }

    def __repr__(self) -> str:
        lines = [f"Results on {self.data.get('n_decisions', '?')} decisions"]
        for method in self.methods:
            head, verdict = method.assessment.estimates[0], method.assessment.verdict
            lines.append(
                f"  {method.name}: {head.estimator} {head.risk:.4f} "
                f"[{head.low:.4f}, {head.high:.4f}], {verdict.label}"
            )
        return "\n".join(lines)


def _hide(data: Mapping[str, object]) -> dict[str, object]:
    """The counts, null where too few; a mean loss times the decisions is a count of events."""
    found = dict(data)
    n, n_events = found.get("n_decisions"), found.get("n_events")
    if (
        isinstance(n, int)
        and isinstance(n_events, int)
        and None in shown_parts(n_events, n - n_events)
    ):
        found |= {"n_events": None, "mean_loss": None}
    for name in ("n_stays", "n_steps", "n_decisions"):
        count = found.get(name)
        if isinstance(count, int):
            found[name] = shown_count(count)
    return found


def _bounds(found: Sensitivity | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {
        "gamma_point": _finite(found.gamma_point),
        "gamma_interval": _finite(found.gamma_interval),
        "bounds": [
            {"gamma": b.gamma, "low": _finite(b.risk_least.low), "high": _finite(b.risk_most.high)}
            for b in found.bounds
        ],
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
