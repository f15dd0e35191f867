"""Risk of a policy from logged decisions, with its interval, diagnosis and verdict."""

from etips.evaluation.assessment import (
    Assessment,
    abstention_curve,
    assess,
    control_gain,
)
from etips.evaluation.calibration import calibration
from etips.evaluation.censoring import LossModel, complete_losses, model_losses
from etips.evaluation.diagnostics import Diagnostics, balance, diagnose, gain, overlap_by_action
from etips.evaluation.estimators import ESTIMATORS, Estimator, estimator_names
from etips.evaluation.inference.betting import guaranteed_gain
from etips.evaluation.inference.estimate import (
    Contrast,
    Estimate,
    Improvement,
    atenp,
    difference,
    effective_size,
    holm,
    require_unseen,
    safe_improvement,
)
from etips.evaluation.inference.evidence import Evidence
from etips.evaluation.inference.intervals import (
    DEFAULT,
    EffectiveCount,
    Interval,
    Logit,
    Percentile,
    Studentised,
    Wald,
)
from etips.evaluation.log import Log, View, view
from etips.evaluation.risk import (
    clipped_ips,
    dm,
    dr,
    dr_shrinkage,
    ips,
    logged_risk,
    matching_factor,
    sndr,
    snips,
    switch_dr,
    weigh,
)
from etips.evaluation.sensitivity import (
    Sensitivity,
    Strength,
    benchmark_features,
    bound_missing,
    bound_risk,
)
from etips.evaluation.verdict import RULES, Rule, Verdict, judge


def __getattr__(name: str) -> object:
    """The formula of any other estimator of the registry."""
    if name in ESTIMATORS:
        return ESTIMATORS[name].formula
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DEFAULT", "ESTIMATORS", "RULES", "Assessment", "Contrast", "Diagnostics", "EffectiveCount",
    "Estimate", "Estimator", "Evidence", "Improvement", "Interval", "Log", "Logit", "LossModel",
    "Percentile", "Rule", "Sensitivity", "Strength", "Studentised", "Verdict", "View", "Wald",
    "abstention_curve", "assess", "atenp", "balance", "benchmark_features",
    "bound_missing", "bound_risk", "calibration", "clipped_ips", "complete_losses",
    "control_gain", "diagnose", "difference", "dm", "dr", "dr_shrinkage", "effective_size",
    "estimator_names", "gain", "guaranteed_gain", "holm", "ips", "judge", "logged_risk",
    "matching_factor", "model_losses", "overlap_by_action", "require_unseen", "safe_improvement",
    "sndr", "snips", "switch_dr", "view", "weigh",
]  # fmt: skip
