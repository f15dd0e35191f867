"""What else an evaluation looks at: losses that are missing, and a negative control."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from etips.data.decisions import Floats
from etips.data.sizes import MissingLosses, count_missing_losses
from etips.data.trajectories import Trajectories
from etips.disclosure import are_few
from etips.errors import DataError, SettingError
from etips.evaluation.assessment import CONTROL_LEVEL, control_gain
from etips.evaluation.censoring import LossModel, model_losses
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View, view
from etips.evaluation.missing_loss_bounds import bound_missing
from etips.evaluation.sensitivity import Sensitivity, bound_risk
from etips.policies.deployed import Deployed
from etips.results.records import (
    Label,
    MethodResult,
    MissingAction,
    MissingBound,
    MissingBoundsResult,
    MissingLossResult,
    NegativeControlResult,
    existing,
)
from etips.results.results import Results
from etips.results.summaries import summarize_sensitivity

GIVEN = "as given"
"""What a negative control is called that came as an array."""


@dataclass(frozen=True, eq=False)
class Control:
    """A negative control: values of something at the decisions, NaN where not known, (n,)."""

    name: str
    values: Floats
    seen: bool


@dataclass(frozen=True, eq=False)
class FurtherChecks:
    """Made before policies are judged, and added to the results.

    Args:
        missing: Actions of the stays as they came that have no loss.
        losses: The model that stands in for those.
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
        """The results with what these checks say."""
        methods = tuple(
            self._check(method, log, view(log, *deployed[method.name].judged), interval)
            for method in results.methods
        )
        about = replace(results.data, missing_loss=self._missing_losses())
        return replace(results, data=about, methods=methods)

    def _check(
        self, method: MethodResult, log: Log, policy: View, interval: Interval
    ) -> MethodResult:
        if self.losses is not None:
            features = () if method.sensitivity is None else method.sensitivity.features
            hidden = bound_risk(log, policy, interval=interval, losses=self.losses)
            bounds = bound_missing(self.losses, log, policy, interval=interval)
            method = replace(
                method,
                sensitivity=summarize_sensitivity(hidden, features),
                missing_loss=_shown_bounds(bounds, method),
            )
        if self.control is None:
            return method
        control = check_control(self.control, log, policy)
        method = replace(method, negative_control=control)
        if not control.warning:
            return method
        label: Label = "unusable" if method.verdict == "unusable" else "doubtful"
        return replace(method, verdict=label, reasons=(*method.reasons, control.sentence))

    def _missing_losses(self) -> MissingLossResult | None:
        missing = self.missing
        if missing is None:
            return None
        rows = np.flatnonzero(missing.shown & (missing.missing > 0))
        n_missing, n_taken = missing.total or (None, None)
        return MissingLossResult(
            missing.treatment,
            n_missing,
            n_taken,
            by_action=tuple(
                MissingAction(int(a), int(missing.missing[a]), int(missing.taken[a]))
                for a in (rows if missing.total is not None else ())
            ),
            raised_share=None if self.losses is None else self.losses.raised_share,
            sentence=missing.tell(),
        )


def find_control(data: Trajectories, given: str | Floats | None) -> Control | None:
    """The negative control that was asked for, or that the data holds.

    Args:
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


def check_control(control: Control, log: Log, policy: View) -> NegativeControlResult:
    """The "gain" in a negative control; no number of fewer than eleven people."""
    gain = control_gain(log, policy, control.values)
    people = np.unique(log.clusters.code[np.isfinite(control.values)]).size
    if are_few(people) or not np.isfinite(gain.difference):
        nothing = None, None, None, CONTROL_LEVEL, None
        return NegativeControlResult(control.name, control.seen, *nothing, warning=False)
    numbers = gain.difference, gain.low, gain.high, CONTROL_LEVEL, gain.spread
    return existing(NegativeControlResult(control.name, control.seen, *numbers, gain.warning))


def _shown_bounds(bounds: Sensitivity, method: MethodResult) -> MissingBoundsResult:
    """For a reader; where the gain is hidden its bounds are."""
    hidden = method.gain is None or method.gain.difference is None
    gains = [
        (None, None) if hidden else (b.gain_least.low, b.gain_most.high) for b in bounds.bounds
    ]
    rows = tuple(
        MissingBound(own.gamma, own.risk_least.low, own.risk_most.high, *gain)
        for own, gain in zip(bounds.bounds, gains, strict=True)
    )
    return existing(MissingBoundsResult(None if hidden else bounds.gamma_point, rows))
