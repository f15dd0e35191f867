"""What the held-out risks of several policies are made of, summed by patient.

Everything that choosing asks follows from these sums: risks and their errors, paired differences,
and the same on some of the patients alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.evaluation.inference.checks import code_ids
from etips.evaluation.inference.evidence import Evidence, Gap

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

    def first(self, count: int) -> "Totals":
        """Those of the first policies."""
        some = {name: getattr(self, name)[:, :count] for name in _SUMS}
        fewer = Totals(**some, count=self.count, largest=self.largest[:count])
        fewer._known.update({i: own for i, own in self._known.items() if i < count})
        return fewer

    def with_columns(self, places: Sequence[int], others: "Totals") -> "Totals":
        """The same with other policies at some places, one column of `others` each."""
        changed = {}
        for name in (*_SUMS, "largest"):
            values = getattr(self, name).copy(order="K")
            values[..., list(places)] = getattr(others, name)
            changed[name] = values
        joined = replace(self, **changed)
        joined._known.update({i: own for i, own in self._known.items() if i not in places})
        joined._known.update({places[i]: own for i, own in others._known.items()})
        return joined

    def evidence(self, place: int) -> Evidence:
        """The risk of one policy; what was asked of it is not worked out again."""
        if place not in self._known:
            own = self._evidence(*(values[:, place] for values in self._parts()))
            self._known[place] = own
        return self._known[place]

    def gap(self, place: int, other: int) -> Gap:
        """The risk of one policy less that of another, paired by patient."""
        if (place, other) not in self._gaps:
            self._gaps[place, other] = Gap(self.evidence(place), self.evidence(other))
        return self._gaps[place, other]

    @cached_property
    def _known(self) -> dict[int, Evidence]:
        """Risks that were asked for."""
        return {}

    @cached_property
    def _patients(self) -> Ints:
        """Numbers of the patients, the same array for all risks."""
        return np.arange(len(self.count))

    @cached_property
    def _gaps(self) -> dict[tuple[int, int], Gap]:
        """Differences that were asked for."""
        return {}

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
        patients = self._patients
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
