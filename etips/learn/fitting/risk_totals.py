"""What the held-out risks of several policies are made of, summed by patient.

Everything that choosing asks follows from these sums: risks and their errors, and the same on some
of the patients alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.evaluation.inference.checks import code_ids
from etips.evaluation.inference.evidence import Evidence

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
