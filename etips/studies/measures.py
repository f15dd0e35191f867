"""What a fold's policy scores on the decisions it was kept from, and the mean over folds."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.disclosure import FEW, shown_parts
from etips.evaluation.estimators import find_estimators
from etips.evaluation.inference.estimate import atenp
from etips.evaluation.log import Log, view
from etips.evaluation.risk import matching_factor
from etips.files.json_documents import finite
from etips.policies.deployed import Deployed
from etips.results.followed_policies import Followed, as_followed, true_risk
from etips.results.study_result import Measures


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
    log: Log,
    held: Trajectories,
    policy: Floats | Deployed | Followed,
    *,
    answers: Ints | None = None,
) -> Measures:
    """Score a policy.

    Args:
        log: The held-out decisions with what it takes to weigh them.
        held: The same decisions; with labels as truth in the digit tasks.
        policy: What it does there, or the probabilities that it draws from, shape (n_decisions,
            n_actions).
        answers: Actions the policy took, where it draws them; its likeliest if left out. Accuracy
            and ATENP are about these.
    """
    followed = as_followed(policy)
    deployed, drawn = followed.deployed, followed.drawn or followed.deployed
    seen = view(log, *deployed.judged)
    snips, ips, dr = (
        entry.estimate(log, seen).risk for entry in find_estimators(("snips", "ips", "dr"), log)
    )
    taken = drawn.probabilities.argmax(axis=1) if answers is None else answers
    answered = np.eye(held.n_actions)[taken]
    matched = atenp(log.loss, log.action, answered, log.clusters)
    n_matched, n_unmatched = shown_parts(matched.n_matched, matched.n_unmatched)
    return Measures(
        # Where the loss is 1 for a wrong label.
        accuracy=None if held.truth is None else 1 - held.true_risk(answered),
        matching_factor=finite(matching_factor(seen.weight, log.clusters).risk),
        snips=finite(snips),
        ips=finite(ips),
        dr=finite(dr),
        atenp=finite(matched.difference),
        n_matched=n_matched,
        n_unmatched=n_unmatched,
        risk=true_risk(deployed, held),
        drawn_risk=true_risk(drawn, held),
    )


def over_folds(measures: Sequence[Measures], figure: Callable[[Measures], float | None]) -> Spread:
    """Mean and standard deviation of one figure over the folds that have it."""
    values = [figure(fold) for fold in measures]
    return Spread(mean_of(values), deviation_of(values))


def mean_of(values: Iterable[float | None]) -> float:
    """Mean of those that are numbers; NaN without any."""
    known = _known(values)
    return float(np.mean(known)) if known else math.nan


def deviation_of(values: Iterable[float | None]) -> float:
    """Standard deviation of those that are numbers; NaN of fewer than two."""
    known = _known(values)
    return float(np.std(known, ddof=1)) if len(known) > 1 else math.nan


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def show_groups(measures: Sequence[Measures]) -> str:
    """Mean sizes of the two groups of ATENP, or that one of them is too small to show.

    The two add up to a known number, so either is hidden with the other.
    """
    if any(fold.n_matched is None for fold in measures):
        return f"one {FEW}"
    matched = over_folds(measures, lambda fold: fold.n_matched)
    unmatched = over_folds(measures, lambda fold: fold.n_unmatched)
    return f"{matched.mean:,.0f} / {unmatched.mean:,.0f}"
