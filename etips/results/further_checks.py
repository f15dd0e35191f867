"""What else an evaluation looks at: losses that are missing, a negative control, known features."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from etips.data.decisions import Floats
from etips.data.missing_loss import MissingLosses, count_missing_losses
from etips.data.trajectories import Trajectories
from etips.disclosure import are_few
from etips.errors import DataError, SettingError
from etips.evaluation.censoring import LossModel, model_losses
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View, view
from etips.evaluation.missing_loss_bounds import bound_missing
from etips.evaluation.negative_control import LEVEL, control_gain
from etips.evaluation.sensitivity import Sensitivity, bound_risk
from etips.files.json_documents import finite
from etips.policies.deployed import Deployed
from etips.results.exhibits import Label
from etips.results.missing_loss_result import (
    MissingAction,
    MissingBound,
    MissingBoundsResult,
    MissingLossResult,
)
from etips.results.negative_control_result import NegativeControlResult
from etips.results.results import MethodResult, Results
from etips.results.summaries import summarize_sensitivity

GIVEN = "as given"
"""What a negative control is called that came as an array."""


@dataclass(frozen=True, eq=False)
class Control:
    """A negative control.

    Args:
        name: What it is called.
        values: One a decision, NaN where not known, shape (n_decisions,).
        seen: Whether it is a feature.
    """

    name: str
    values: Floats
    seen: bool


@dataclass(frozen=True, eq=False)
class FurtherChecks:
    """Made before policies are judged, and added to what was found.

    Args:
        data: The stays with a loss at every decision.
        missing: Actions of the stays as they came that have no loss.
        losses: How those were stood in for.
        control: The negative control.
    """

    data: Trajectories
    missing: MissingLosses | None
    losses: LossModel | None
    control: Control | None

    @classmethod
    def of(cls, data: Trajectories, control: str | Floats | None) -> "FurtherChecks":
        """What `data` asks for; `control` is a column's name, or numbers, as `evaluate` has it."""
        losses = model_losses(data)
        whole = data if losses is None else losses.complete(data)
        return cls(whole, count_missing_losses(data), losses, find_control(whole, control))

    def add(
        self,
        results: Results,
        log: Log,
        deployed: Mapping[str, Deployed],
        *,
        interval: Interval = DEFAULT,
    ) -> Results:
        """The results with what was found here."""
        methods = tuple(
            self._judged(method, log, view(log, *deployed[method.name].judged), interval)
            for method in results.methods
        )
        about = replace(results.data, missing_loss=self._told())
        return replace(results, data=about, methods=methods)

    def _judged(
        self, method: MethodResult, log: Log, policy: View, interval: Interval
    ) -> MethodResult:
        if self.losses is not None:
            features = () if method.sensitivity is None else method.sensitivity.features
            hidden = bound_risk(log, policy, interval=interval, losses=self.losses)
            method = replace(method, sensitivity=summarize_sensitivity(hidden, features))
            bounds = bound_missing(self.losses, log, policy, interval=interval)
            method = replace(method, missing_loss=_shown_bounds(bounds, method))
        if self.control is None:
            return method
        found = _summarize_control(self.control, log, policy)
        method = replace(method, negative_control=found)
        if not found.warning:
            return method
        label: Label = "unusable" if method.verdict == "unusable" else "doubtful"
        return replace(method, verdict=label, reasons=(*method.reasons, found.sentence))

    def _told(self) -> MissingLossResult | None:
        missing = self.missing
        if missing is None:
            return None
        total = missing.total or (None, None)
        told = missing.shown if missing.total is not None else np.zeros(missing.taken.size, bool)
        return MissingLossResult(
            treatment=missing.treatment,
            n_missing=total[0],
            n_taken=total[1],
            by_action=tuple(
                MissingAction(int(a), int(missing.missing[a]), int(missing.taken[a]))
                for a in np.flatnonzero(told & (missing.missing > 0))
            ),
            raised_share=None if self.losses is None else self.losses.raised_share,
            sentence=missing.tell(),
        )


def find_control(data: Trajectories, given: str | Floats | None) -> Control | None:
    """The negative control that was asked for, or that the data holds.

    Args:
        data: Logged stays.
        given: A feature (its last visible value counts), the data's own column, or one number a
            decision, shape (n_decisions,).
    """
    own = data.schema.roles.negative_control
    if given is None or (isinstance(given, str) and given == own):
        if data.negative_control is not None:
            return Control(own, data.negative_control[data.decision_rows], seen=False)
        if given is None:
            return None
    if not isinstance(given, str):
        values = np.asarray(given, dtype=np.float64)
        if values.shape != (data.n_decisions,):
            raise DataError("negative_control", "must have one entry a decision")
        return Control(GIVEN, values, seen=False)
    if given in data.schema.sequence:
        column = data.sequence[data.seen_rows][:, data.schema.sequence.index(given)]
    elif given in data.schema.static:
        column = data.static[data.decisions().stay][:, data.schema.static.index(given)]
    else:
        fix = "Name a feature, or name the column when the table is read."
        raise SettingError("negative_control", "must be a column of the data", fix=fix)
    return Control(given, column.astype(np.float64), seen=True)


def _summarize_control(control: Control, log: Log, policy: View) -> NegativeControlResult:
    found = control_gain(log, policy, control.values)
    people = np.unique(log.clusters.code[np.isfinite(control.values)]).size
    told = not are_few(people) and np.isfinite(found.difference)
    return NegativeControlResult(
        name=control.name,
        seen=control.seen,
        difference=finite(found.difference) if told else None,
        low=finite(found.low) if told else None,
        high=finite(found.high) if told else None,
        level=LEVEL,
        spread=finite(found.spread) if told else None,
        warning=bool(told and found.warning),
    )


def _shown_bounds(found: Sensitivity, method: MethodResult) -> MissingBoundsResult:
    """For a reader; where the gain is hidden its bounds are."""
    hidden = method.gain is None or method.gain.difference is None
    return MissingBoundsResult(
        gamma_point=None if hidden else finite(found.gamma_point),
        bounds=tuple(
            MissingBound(
                gamma=finite(bound.gamma),
                risk_low=finite(bound.risk_least.low),
                risk_high=finite(bound.risk_most.high),
                gain_low=None if hidden else finite(bound.gain_least.low),
                gain_high=None if hidden else finite(bound.gain_most.high),
            )
            for bound in found.bounds
        ),
    )
