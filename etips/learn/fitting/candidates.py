"""A policy that could be chosen, and what held-out decisions say of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.evaluation.inference.checks import code_ids
from etips.evaluation.inference.evidence import Evidence

FACTOR_RANGE = (0.7, 1.4)
"""A candidate whose matching factor lies outside has left the log behind; its SNIPS says little."""

LEAST_SIZE = 30.0
"""Least effective number of decisions that a candidate's risk must rest on."""


_SUMS = ("weighted", "weight", "square", "predicted")


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums by patient, one column a policy; shape (k, m) each.

    Args:
        weighted: Of weight times loss, less the predicted loss where losses are predicted.
        weight: Of the weights.
        square: Of the squares of the weights, each policy's in units of its largest.
        predicted: Of the predicted loss of the policy's actions; 0 where none are predicted.
        count: Decisions, shape (k,).
        largest: Largest weight of each policy, shape (m,): squares of tiny weights would vanish.
    """

    weighted: Floats
    weight: Floats
    square: Floats
    predicted: Floats
    count: Floats
    largest: Floats

    def of(self, patients: Bools) -> "Totals":
        """Those of some patients; `patients` has shape (k,)."""
        rows = np.flatnonzero(patients)
        some = {name: getattr(self, name).T.take(rows, axis=1).T for name in _SUMS}
        return Totals(**some, count=self.count[rows], largest=self.largest)

    def evidence(self, place: int) -> Evidence:
        """The risk of one policy."""
        return self._evidence(*(values[:, place] for values in self._parts()))

    def evidence_of_choice(self, places: Ints) -> Evidence:
        """The risk of having chosen a policy for each patient; `places` has shape (k,)."""
        rows = np.arange(len(places))
        return self._evidence(*(values[rows, places] for values in self._parts()))

    def matching_factor(self, place: int) -> float:
        """Mean weight of one policy."""
        return float(self.weight[:, place].sum() / self.count.sum())

    def effective_size(self, place: int) -> float:
        """Effective number of decisions behind one policy's risk."""
        weight = self.weight[:, place].sum() / self.largest[place]
        return float(weight**2 / self.square[:, place].sum())

    def _parts(self) -> tuple[Floats, Floats, Floats]:
        return self.weighted, self.weight, self.predicted

    def _evidence(self, weighted: Floats, weight: Floats, predicted: Floats) -> Evidence:
        patients = np.arange(len(self.count))
        if not predicted.any():  # one ratio: its error is that of SNIPS to the digit
            return Evidence(weighted[:, None], weight[:, None], np.ones(1), patients)
        above, below = np.stack([weighted, predicted]), np.stack([weight, self.count])
        return Evidence(above.T, below.T, np.ones(2), patients)  # of long columns, not short rows


@dataclass(frozen=True, eq=False)
class Weighing:
    """A log that policies are judged on.

    Args:
        propensity: Of the logged action, clipped, shape (n,).
        loss: Of the logged action, shape (n,).
        cluster: Patient (or stay) of each decision, shape (n,).
        predicted: Predicted loss of the logged action, shape (n,); None without predictions.
    """

    propensity: Floats
    loss: Floats
    cluster: Ints
    predicted: Floats | None = None

    def totals(self, chosen: Sequence[Floats], predicted: Sequence[Floats] = ()) -> Totals:
        """What the risks of some policies are made of.

        Args:
            chosen: Each one's probability of the logged action, shape (n,).
            predicted: Predicted loss of each one's actions, shape (n,); nothing without
                predictions.
        """
        patient = code_ids(self.cluster)[1]
        count = np.bincount(patient).astype(np.float64)
        own = self.loss if self.predicted is None else self.loss - self.predicted
        sums = np.zeros((len(_SUMS), len(chosen), len(count)))
        largest = np.ones(len(chosen))
        for place, probability in enumerate(chosen):
            some = _where_any(probability)
            weight = probability[some] / self.propensity[some]
            largest[place] = weight.max(initial=0.0) or 1.0
            parts = (weight * own[some], weight, (weight / largest[place]) ** 2)
            for kind, part in enumerate(parts):
                sums[kind, place] = np.bincount(patient[some], part, len(count))
            if predicted:
                sums[-1, place] = np.bincount(patient, predicted[place], len(count))
        by_name = dict(zip(_SUMS, sums.transpose(0, 2, 1), strict=True))
        return Totals(**by_name, count=count, largest=largest)


def _where_any(probability: Floats) -> Ints | slice:
    """Where a probability (n,) is not zero, as of a constant's seldom action; all if mostly so."""
    some = np.flatnonzero(probability)
    return some if len(some) < len(probability) / 2 else slice(None)


@dataclass(frozen=True)
class Candidate:
    """One policy that could be chosen.

    Args:
        translation: It was trained with; NaN for one that was trained without, or not at all.
        risk: SNIPS, or its doubly robust form where losses are predicted.
        std_error: Of the risk, by patient.
        matching_factor: Mean weight, 1 in expectation.
        effective_size: Effective number of decisions.
        chosen: Whether it became the policy.
        clinicians: Whether it is the clinicians themselves.
        corrected: Of the chosen one: risk of what choosing comes to, each fold judged by a choice
            that did not look at it. The risk above is after selection, so the luckiest's. None of
            others, and where there are no folds.
        corrected_error: Standard error of that.
        epochs: Most that one of its networks learned for; None where nothing was trained, or nobody
            counted.
        form: What it was trained by; see `etips.learn.learners.policy_objectives`.
        strength: How much that smooths or fears; NaN where it has no such number.
    """

    translation: float
    risk: float
    std_error: float
    matching_factor: float
    effective_size: float
    chosen: bool = False
    clinicians: bool = False
    corrected: float | None = None
    corrected_error: float | None = None
    epochs: int | None = None
    form: str = "translated"
    strength: float = math.nan

    @property
    def sound(self) -> bool:
        """Whether its risk can be believed enough to choose by."""
        low, high = FACTOR_RANGE
        return low <= self.matching_factor <= high and self.effective_size >= LEAST_SIZE


@dataclass(frozen=True, eq=False)
class Judged:
    """Candidates, and what their risks are made of.

    Args:
        candidates: In the order of the columns of `totals`.
        totals: By patient.
    """

    candidates: tuple[Candidate, ...]
    totals: Totals

    def on(self, patients: Bools) -> "Judged":
        """The same as some patients alone would judge them; `patients` has shape (k,)."""
        return judge(self.candidates, self.totals.of(patients))


def judge(candidates: Sequence[Candidate], totals: Totals) -> Judged:
    """Candidates with the figures that follow from totals, one column a candidate."""
    each = zip(candidates, range(len(candidates)), strict=True)
    return Judged(tuple(_measured(own, totals, place) for own, place in each), totals)


def blank(translation: float = math.nan) -> Candidate:
    """A candidate that is not judged yet."""
    return Candidate(translation, np.inf, np.inf, 0.0, 0.0)


def estimate_candidate(
    chosen: Floats, propensity: Floats, loss: Floats, cluster: Ints
) -> Candidate:
    """What the log says of a policy.

    Args:
        chosen: Policy's probability of the logged action, shape (n,).
        propensity: Of the logged action, clipped, shape (n,).
        loss: Of the logged action, shape (n,).
        cluster: Patient (or stay) of each decision, shape (n,).
    """
    totals = Weighing(propensity, loss, cluster).totals([chosen])
    return _measured(blank(), totals, 0)


def _measured(candidate: Candidate, totals: Totals, place: int) -> Candidate:
    if not totals.weight[:, place].any():
        nothing = blank()
        return replace(
            candidate,
            risk=nothing.risk,
            std_error=nothing.std_error,
            matching_factor=nothing.matching_factor,
            effective_size=nothing.effective_size,
        )
    evidence = totals.evidence(place)
    return replace(
        candidate,
        risk=evidence.value,
        std_error=evidence.std_error,
        matching_factor=totals.matching_factor(place),
        effective_size=totals.effective_size(place),
    )
