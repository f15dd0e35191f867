"""What the held-out risks of several policies are made of, summed by patient.

Everything that choosing asks follows from these sums: risks and their errors, paired differences,
and the same on some of the patients alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.evaluation.inference.evidence import Evidence


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
        return Totals(
            self.weighted[patients],
            self.weight[patients],
            self.square[patients],
            self.predicted[patients],
            self.count[patients],
            self.largest,
        )

    def first(self, count: int) -> "Totals":
        """Those of the first policies."""
        return Totals(
            self.weighted[:, :count],
            self.weight[:, :count],
            self.square[:, :count],
            self.predicted[:, :count],
            self.count,
            self.largest[:count],
        )

    def with_columns(self, places: Sequence[int], others: "Totals") -> "Totals":
        """The same with other policies at some places, one column of `others` each."""
        changed = {}
        for name in ("weighted", "weight", "square", "predicted", "largest"):
            values = getattr(self, name).copy()
            values[..., list(places)] = getattr(others, name)
            changed[name] = values
        return replace(self, **changed)

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
        patients = np.arange(len(weight))
        if not predicted.any():  # one ratio: its error is that of SNIPS to the digit
            return Evidence(weighted[:, None], weight[:, None], np.ones(1), patients)
        above = np.stack([weighted, predicted], axis=1)
        return Evidence(above, np.stack([weight, self.count], axis=1), np.ones(2), patients)


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
        patient = np.unique(self.cluster, return_inverse=True)[1]
        count = np.bincount(patient).astype(np.float64)
        own = self.loss if self.predicted is None else self.loss - self.predicted
        none = np.zeros_like(self.loss)
        columns, largest = [], []
        for place, probability in enumerate(chosen):
            weight = probability / self.propensity
            most = weight.max() or 1.0
            said = predicted[place] if predicted else none
            parts = (weight * own, weight, (weight / most) ** 2, said)
            columns.append([np.bincount(patient, part, len(count)) for part in parts])
            largest.append(most)
        weighted, sums, squares, said_sums = np.moveaxis(np.asarray(columns), 0, 2)
        return Totals(weighted, sums, squares, said_sums, count, np.asarray(largest))
