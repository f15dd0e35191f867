"""What held-out decisions say of policies: their gain over the clinicians, doubly robust, paired.

All policies are judged by the same scores. A score is the predicted loss of an action, corrected by
the weighted residual where that action was taken; it is right if either the predictions or the
propensities are.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from etips.data.decisions import Floats, Ints

Z = 1.64
"""Standard errors by which the corrected gap must be below zero: a test at 5 %, one-sided, if folds
were independent. They share what they learn: of 100 logs of 600 rows without effect 21 pass,
and 16 at 2.1."""

CAUTION = 1.0
"""Standard errors that are added to a gap before policies are compared: of two that promise the
same the surer one. With 0 the noisiest is the luckiest; in 25 curved worlds (1,500 stays, one log
each, 0, 0.5, 1 and 1.64) the mean share of the best possible gain was 0.71, 0.71, 0.74 and 0.71."""

LEANS = (0.0, 0.1, 0.3, 1.0, 3.0)
"""How much what the clinicians do may count, in standard deviations of the loss a unit of
log-propensity: from not at all to nearly all. Floors of 0 to 0.2 in their place gained less
wherever the clinicians are good (0.005 to 0.16)."""

LEAST_LEAN_BLIND = 0.3
"""The least lean where decisions do not see the step that the clinicians saw (a lag of 1 or more),
unless propensities are known. What moved the clinicians is hidden then, and no risk tells of it: in
ICU-Sepsis the judge takes a stack that does not lean for 0.06 better where it is 0.002 worse. Leans
of 0.1, 0.2, 0.3 and 1 gain 0.007, 0.009, 0.009 and 0.006 (mean of five logs of 2,000 or 5,000)."""

CLIP = 0.01
"""Least propensity that a residual is divided by."""

FACTORS = (0.7, 1.4)
"""Mean weight of a policy that can be judged: one beyond has left the log behind."""

LEAST_SIZE = 30.0
"""Least effective number of decisions that its scores must rest on."""


@dataclass(frozen=True, eq=False)
class Judge:
    """Decisions that policies are judged on.

    Args:
        action: That was taken, shape (n,).
        loss: Its loss, shape (n,).
        chance: Propensity of that action, shape (n,).
        scores: Of every action, shape (n, K).
        patient: Of each decision, 0..k-1, shape (n,).
        fold: Of each decision, shape (n,).
    """

    action: Ints
    loss: Floats
    chance: Floats
    scores: Floats
    patient: Ints
    fold: Ints

    def verdict(self, chosen: Ints) -> "Verdict":
        """What the decisions say of a policy that takes `chosen`, shape (n,)."""
        rows = np.arange(len(chosen))
        return self.verdict_of(self.scores[rows, chosen] - self.loss, chosen)

    def verdict_of(self, gaps: Floats, chosen: Ints) -> "Verdict":
        """The same from the gap of each decision."""
        mean, error = self.mean(gaps)
        weight = (chosen == self.action) / np.maximum(self.chance, CLIP)
        total = float(weight.sum())
        size = total**2 / float((weight**2).sum()) if total else 0.0
        return Verdict(mean, error, total / len(weight), size)

    def mean(self, gaps: Floats) -> tuple[float, float]:
        """Mean of a value a decision, and its standard error by patient."""
        n = len(gaps)
        mean = float(gaps.mean())
        by_patient = np.bincount(self.patient, gaps - mean)
        k = len(by_patient)
        if k < 2:
            return mean, float("inf")
        return mean, float(np.sqrt(k / (k - 1) * (by_patient**2).sum()) / n)


@dataclass(frozen=True)
class Verdict:
    """What held-out decisions say of a policy.

    Args:
        gap: Its risk less the clinicians'.
        error: Standard error of that, by patient.
        factor: Mean weight of its actions.
        size: Effective number of decisions behind it.
    """

    gap: float
    error: float
    factor: float
    size: float

    @property
    def standing(self) -> float:
        """What policies are compared by; infinite for what the log cannot judge."""
        low, high = FACTORS
        fit = low <= self.factor <= high and self.size >= LEAST_SIZE
        return self.gap + CAUTION * self.error if fit else float("inf")


@dataclass(frozen=True, eq=False)
class Choice:
    """What a judge keeps.

    Args:
        best: Number of the policy whose gap plus `CAUTION` standard errors is least.
        verdicts: Of every policy.
        corrected: Gap of what choosing comes to: each fold judged by what the other folds choose.
        error: Standard error of that.
    """

    best: int
    verdicts: tuple[Verdict, ...]
    corrected: float
    error: float

    @property
    def beats_clinicians(self) -> bool:
        """Whether what was chosen is better than the clinicians beyond noise.

        The gap of the chosen one is that of the luckiest; the corrected one is not.
        """
        judged = np.isfinite(self.verdicts[self.best].standing)
        return bool(judged and self.corrected + Z * self.error < 0)


def choose(judge: Judge, policies: Callable[[int | None], Sequence[Ints]]) -> Choice:
    """The policy of the least gap with some caution, and what choosing so comes to.

    Args:
        judge: The decisions.
        policies: Actions of every policy, shape (n,) each, as all folds make them, or all but one:
            what is fitted to the scores must not have seen the fold that it is judged on.
    """
    everything = policies(None)
    verdicts = tuple(judge.verdict(chosen) for chosen in everything)
    best = int(np.argmin([verdict.standing for verdict in verdicts]))
    gaps = np.zeros(len(judge.loss))
    rows = np.arange(len(gaps))
    for number in np.unique(judge.fold):
        inside = judge.fold == number
        if inside.all():
            gaps = judge.scores[rows, everything[best]] - judge.loss
            break
        others = Judge(
            judge.action[~inside],
            judge.loss[~inside],
            judge.chance[~inside],
            judge.scores[~inside],
            np.unique(judge.patient[~inside], return_inverse=True)[1],
            judge.fold[~inside],
        )
        candidates = policies(int(number))
        standings = [others.verdict(chosen[~inside]).standing for chosen in candidates]
        chosen = candidates[int(np.argmin(standings))]
        gaps[inside] = (judge.scores[rows, chosen] - judge.loss)[inside]
    corrected, error = judge.mean(gaps)
    return Choice(best, verdicts, corrected, error)
