"""What a fold's policy scores on the decisions it was kept from, and the mean over folds."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.disclosure import FEW, any_few, shown_parts
from etips.evaluation.assessment import assess
from etips.evaluation.contrast import atenp
from etips.evaluation.log import Log
from etips.files.json_documents import finite
from etips.results.study_result import FoldResult, PropensityQuality
from etips.results.translation_path import summarize_path
from etips.runs.path_file import path_from_json


@dataclass(frozen=True)
class Measures:
    """One policy on one fold; NaN where a figure does not exist.

    Args:
        accuracy: Share of right answers, where labels are known.
        matching_factor: Mean weight.
        snips: Estimated risk.
        ips: Estimated risk.
        dr: Estimated risk.
        atenp: Mean loss of matched decisions minus that of the others.
        n_matched: Decisions whose logged action is the policy's likeliest.
        n_unmatched: The others.
        risk: True risk of the policy, in a world that knows it.
        greedy_risk: True risk of taking its likeliest action.
    """

    accuracy: float
    matching_factor: float
    snips: float
    ips: float
    dr: float
    atenp: float
    n_matched: int
    n_unmatched: int
    risk: float
    greedy_risk: float


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over folds; NaN without folds, or with one."""

    mean: float
    deviation: float

    def show(self, places: int = 3) -> str:
        """As tables print it."""
        if math.isnan(self.mean):
            return "-"
        if math.isnan(self.deviation):
            return f"{self.mean:z.{places}f}"
        return f"{self.mean:z.{places}f} ± {self.deviation:.{places}f}"


def measure_policy(
    log: Log, held: Trajectories, probabilities: Floats, *, answers: Ints | None = None
) -> Measures:
    """Score a policy.

    Args:
        log: The held-out decisions with what it takes to weigh them.
        held: The same decisions; with labels as truth in the digit tasks.
        probabilities: The policy there, shape (n_decisions, n_actions).
        answers: Actions the policy took, where it draws them; its likeliest if left out. Accuracy,
            greedy risk and ATENP are about these.
    """
    assessment = assess(log, probabilities, estimators=("snips", "ips", "dr"))
    snips, ips, dr = (estimate.risk for estimate in assessment.estimates)
    taken = probabilities.argmax(axis=1) if answers is None else answers
    answered = np.eye(held.n_actions)[taken]
    matched = atenp(log.loss, log.action, answered, log.clusters)
    risk = greedy = math.nan
    if held.truth is not None:
        risk = held.true_risk(probabilities)
        greedy = held.true_risk(answered)
    return Measures(
        accuracy=1 - greedy,  # where the loss is 1 for a wrong label
        matching_factor=assessment.diagnostics.matching_factor.risk,
        snips=snips,
        ips=ips,
        dr=dr,
        atenp=matched.difference,
        n_matched=matched.n_matched,
        n_unmatched=matched.n_unmatched,
        risk=risk,
        greedy_risk=greedy,
    )


def over_folds(measures: Sequence[Measures], name: str) -> Spread:
    """Mean and standard deviation of one figure over the folds that have it."""
    values = [float(getattr(fold, name)) for fold in measures]
    return Spread(mean_of(values), deviation_of(values))


def mean_of(values: Iterable[float]) -> float:
    """Mean of those that are finite; NaN without any."""
    known = [value for value in values if math.isfinite(value)]
    return float(np.mean(known)) if known else math.nan


def deviation_of(values: Iterable[float]) -> float:
    """Standard deviation of those that are finite; NaN of fewer than two."""
    known = [value for value in values if math.isfinite(value)]
    return float(np.std(known, ddof=1)) if len(known) > 1 else math.nan


def show_groups(measures: Sequence[Measures]) -> str:
    """Mean sizes of the two groups of ATENP, or that one of them is too small to show.

    The two add up to a known number, so either is hidden with the other.
    """
    counts = [n for fold in measures for n in (fold.n_matched, fold.n_unmatched)]
    if any_few(counts):
        return f"one {FEW}"
    matched, unmatched = over_folds(measures, "n_matched"), over_folds(measures, "n_unmatched")
    return f"{matched.mean:,.0f} / {unmatched.mean:,.0f}"


def summarize_fold(measures: Measures, told: Mapping[str, Any]) -> FoldResult:
    """A fold as results show it: no NaN, and no group too small to show.

    Args:
        measures: What its policy scored.
        told: What its task left as JSON.
    """
    quality = told.get("quality")
    n_matched, n_unmatched = shown_parts(measures.n_matched, measures.n_unmatched)
    return FoldResult(
        accuracy=finite(measures.accuracy),
        matching_factor=finite(measures.matching_factor),
        snips=finite(measures.snips),
        ips=finite(measures.ips),
        dr=finite(measures.dr),
        atenp=finite(measures.atenp),
        n_matched=n_matched,
        n_unmatched=n_unmatched,
        risk=finite(measures.risk),
        greedy_risk=finite(measures.greedy_risk),
        n_learnt_from=told["n_learnt_from"],
        n_held_out=told["n_held_out"],
        quality=PropensityQuality(**quality) if quality else None,
        support=told.get("support"),
        clipped_share=told.get("clipped_share"),
        path=summarize_path(path_from_json(told.get("path", ()))),
    )
