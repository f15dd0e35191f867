"""What `results.json` holds of a policy: estimates, gain, diagnosis, verdict, sensitivity.

A field that is None is not known, or hidden: no count of 1 to 10 people gets in.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar, cast

import numpy as np

STRICT: dict[str, object] = {"extra": "forbid", "strict": True, "allow_inf_nan": False}
"""How pydantic reads a document of ours back: nothing unknown, nothing converted."""

NOTICE: Literal["For research, not for clinical use."] = "For research, not for clinical use."

Record = Mapping[str, object]
"""Names and values of the user's own, JSON-ready: settings, seeds, provenance."""

Label = Literal["reliable", "doubtful", "unusable"]
"""A verdict."""

Outcome = Literal["sum", "last"]
"""Of a whole stay: the sum of its losses, or the loss of its last decision."""

Distance = Literal["near", "moved", "far"]
"""How far the judged data are from those learned from."""

ONE_DECISION = "One decision changed, the rest as logged"
THROUGHOUT = "The policy decides throughout"

TRANSLATED = "translated"
"""The form of the paper's policies: trained with a translation alone."""

T = TypeVar("T")


def existing(value: T) -> T:
    """A copy of a record in which every number that is not finite is None."""
    return cast(T, _copy(value, lambda record, own: replace(record, **own), tuple))


def to_json(result: object) -> dict[str, object]:
    """A JSON-ready copy of a dataclass; numbers that are not finite become null."""
    return cast(dict[str, object], _copy(result, lambda _, own: own, list))


def _copy(value: Any, record: Callable[[Any, Any], object], row: type) -> object:  # noqa: ANN401
    """A copy; `record` says what stands for a dataclass, given it and its fields."""
    if is_dataclass(value):
        own = {
            field.name: _copy(getattr(value, field.name), record, row) for field in fields(value)
        }
        return record(value, own)
    if isinstance(value, Mapping):
        return {str(name): _copy(inner, record, row) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return row(_copy(inner, record, row) for inner in value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a result cannot hold {type(value).__name__}")


@dataclass(frozen=True)
class EstimateResult:
    """A risk with its interval. `label` and `sentence` say on a page what the formula is."""

    estimator: str
    risk: float | None
    std_error: float | None
    low: float | None
    high: float | None
    label: str | None = None
    sentence: str | None = None


@dataclass(frozen=True)
class DifferenceResult:
    """An outcome under a policy minus that under the clinicians: below zero is better.

    Args:
        better: Whether the interval lies below zero, allowing for all policies looked at.
    """

    difference: float | None = None
    std_error: float | None = None
    low: float | None = None
    high: float | None = None
    better: bool | None = None


@dataclass(frozen=True)
class GainResult(DifferenceResult):
    """The headline risk minus the clinicians'.

    `better` is said of one decision where stays have one, and else only where the policy is better
    over the whole stay too.

    Args:
        adjusted_p: Of no gain, corrected for all policies evaluated together.
        better_at_one_decision: Whether the policy is shown to be better where one decision is its
            own and all others are as logged.
        guaranteed: Upper limit that holds for any number of stays, where losses are in 0..1.
    """

    adjusted_p: float | None = None
    better_at_one_decision: bool | None = None
    guaranteed: float | None = None


@dataclass(frozen=True)
class AtenpResult:
    """Mean loss of decisions that match the policy minus that of the others."""

    difference: float | None
    n_matched: int | None
    n_unmatched: int | None


@dataclass(frozen=True)
class DiagnosticsResult:
    """How well the log supports an estimate of the policy.

    Args:
        effective_sample_size: Kish's, of the decisions' weights.
        n_matched: Decisions whose logged action is the policy's likeliest one.
        clipped_share: Decisions whose propensity was raised to the floor.
    """

    matching_factor: float | None
    effective_sample_size: float | None
    n_matched: int | None
    clipped_share: float | None
    max_weight: float | None


@dataclass(frozen=True)
class FeatureStrength:
    """How much the odds of the actions taken depend on features that are left out together.

    `gamma` is the factor by which the odds change, at 95 in 100 decisions at most.
    """

    names: tuple[str, ...]
    gamma: float


@dataclass(frozen=True)
class GammaBound:
    """What is possible if odds depend on something that cannot be seen by up to `gamma`.

    `gamma` is None for any amount. Limits allow for chance.
    """

    gamma: float | None
    risk_low: float | None
    risk_high: float | None
    gain_low: float | None
    gain_high: float | None


@dataclass(frozen=True)
class SensitivityResult:
    """What hidden confounding could do, or losses that are missing for what they are.

    Args:
        gamma_point: Least odds ratio at which the gain may be gone; None for none up to 1000.
        gamma_interval: The same, sampling error included.
        bounds: By rising gamma.
        balanced: Whether the bounds are the sharp ones, for which losses must be predicted.
        features: How strong recorded features are, to compare a hidden one with.
    """

    gamma_point: float | None
    gamma_interval: float | None
    bounds: tuple[GammaBound, ...]
    balanced: bool = False
    features: tuple[FeatureStrength, ...] = ()


@dataclass(frozen=True)
class MissingAction:
    """How often an action was taken, and how often without a loss."""

    action: int
    n_missing: int
    n_taken: int


@dataclass(frozen=True)
class MissingLossResult:
    """Logged actions without a loss.

    Args:
        treatment: "drop": they are no decisions. "weight": others that look alike stand in.
        by_action: Those that may be shown.
        raised_share: With weights: decisions whose chance of being observed was raised to 0.05.
    """

    treatment: Literal["drop", "weight"]
    n_missing: int | None
    n_taken: int | None
    by_action: tuple[MissingAction, ...]
    raised_share: float | None
    sentence: str


@dataclass(frozen=True)
class NegativeControlResult:
    """The policy's "gain" in something that no action can have changed: it should be zero.

    Args:
        name: The column, measured before the action.
        seen: Whether it is a feature, so that propensities and policy used it.
        difference: Weighted for the policy, minus as it was.
        spread: Standard deviation of the column, to compare the difference with.
        warning: Whether the interval leaves out zero.
    """

    name: str
    seen: bool
    difference: float | None
    low: float | None
    high: float | None
    level: float
    spread: float | None
    warning: bool

    @property
    def sentence(self) -> str:
        """In words, for a reader."""
        if self.difference is None or self.low is None or self.high is None:
            return f"Negative control {self.name}: no number."
        by = f"{self.difference:+.3g} [{self.low:+.3g}, {self.high:+.3g}]"
        if self.spread:
            by += f", {abs(self.difference) / self.spread:.2f} standard deviations"
        rest = "; zero is what it should be and could be."
        if self.warning:
            rest = (
                ", where no action can have caused one: what looks like the policy's doing may be "
                "who was treated."
            )
        if self.seen:
            rest += " The propensities used this column: it tests them, not what is hidden."
        return f'Negative control {self.name}: a "gain" of {by}{rest}'


@dataclass(frozen=True)
class PrognosisResult:
    """Prognosis of the weighted patients minus that of all, in units of the loss.

    With right propensities it is zero but for chance; what is left may be mistaken for a gain.
    Below zero the weighted patients were better off to begin with.
    """

    difference: float | None
    std_error: float | None
    sentence: str | None = None


@dataclass(frozen=True)
class WholeStayResult:
    """The outcome of stays in which the policy decides throughout.

    Args:
        effective_stays: What the stays that were treated as the policy would are worth.
        weight_share: Share of the ratios at the end of stays that was used; the rest was cut off.
        n_corrected: Decisions of a stay, from its first, that the log corrects; later ones rest on
            the model alone.
        one_decision: The result for one changed decision, to stand beside it.
        reversal: Whether a gain at one decision is a loss over the stay, or seems to be.
    """

    outcome: Outcome
    estimates: tuple[EstimateResult, ...]
    clinicians: EstimateResult | None
    gain: DifferenceResult
    effective_stays: float | None
    weight_share: float | None
    n_corrected: int
    longest_stay: int
    verdict: Label
    reasons: tuple[str, ...]
    sentence: str
    one_decision: str
    reversal: bool = False


@dataclass(frozen=True)
class PathCandidate:
    """One policy that could be chosen.

    Args:
        translation: It was trained with; None for one that was trained without, or not at all.
        risk: SNIPS, or its doubly robust form where the learner predicts losses.
        sound: Whether its risk was good enough to choose by.
        clinicians: Whether it is the clinicians themselves.
        corrected: Of the chosen one: risk of choosing, on patients that the choice did not look at;
            the risk above is after selection.
        epochs: Most that one of its networks learned for.
        strength: Of the smoothing or the penalty.
    """

    translation: float | None
    risk: float | None
    std_error: float | None
    matching_factor: float | None
    effective_size: float | None
    chosen: bool
    sound: bool
    clinicians: bool = False
    corrected: float | None = None
    corrected_error: float | None = None
    epochs: int | None = None
    form: str = TRANSLATED
    strength: float | None = None

    @property
    def called(self) -> str:
        """What it is, in words."""
        if self.clinicians:
            return "as the clinicians"
        if self.form == TRANSLATED and self.translation is None:
            return "trained"
        shift = None if self.translation is None else f"translation {self.translation:.3g}"
        strength = None if self.strength is None else f"{self.strength:g}"
        head = None if self.form == TRANSLATED else " ".join(filter(None, [self.form, strength]))
        return ", ".join(filter(None, [head, shift]))


@dataclass(frozen=True)
class FeatureShift:
    """How a feature differs between two sources.

    Args:
        difference: Mean here minus mean there, in standard deviations (of the logarithm, where that
            is what the policy reads).
        spread: Standard deviation here over that there.
    """

    name: str
    difference: float
    spread: float


@dataclass(frozen=True)
class ActionShift:
    """Share of the decisions with an action, there and here.

    `expected` is the share here had the clinicians of there treated these patients.
    """

    name: str
    there: float | None
    here: float | None
    expected: float | None


@dataclass(frozen=True)
class ShiftResult:
    """How the data here, which a policy is judged on, differ from those there, where it learned.

    Args:
        features: Those that differ most, the largest first.
        n_features: Compared.
        n_apart: By more than a quarter of a standard deviation.
        unlike: Share of the decisions with a feature beyond four standard deviations of there.
        practice: Share of decisions that would have to change for the actions here to be as often
            taken as the clinicians of there would on the same patients.
        log_loss_there: Of the logged actions by the clinicians of there; less is nearer.
        log_loss_here: By those fitted here.
    """

    policy: str
    there: Mapping[str, str]
    here: Mapping[str, str]
    features: tuple[FeatureShift, ...]
    n_features: int
    n_apart: int
    unlike: float | None
    actions: tuple[ActionShift, ...]
    practice: float | None
    log_loss_there: float | None
    log_loss_here: float | None
    loss_there: float | None
    loss_here: float | None
    distance: Distance
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class DataSummary:
    """What policies were evaluated on: counts and names, no patient.

    Args:
        lag: 1 if a decision sees only the steps before it.
        n_events: Decisions with a loss of 1, where losses are 0 or 1.
        one_decision: Whether every stay has one decision, so that a decision is the whole stay.
        missing_loss: Actions that have no loss, where there are any.
        loss: What the loss is, in a sentence for a reader.
    """

    n_stays: int | None
    n_decisions: int | None
    n_actions: int
    lag: int
    n_steps: int | None = None
    n_events: int | None = None
    mean_loss: float | None = None
    actions: tuple[str, ...] = ()
    provenance: Record = field(default_factory=dict)
    one_decision: bool = False
    missing_loss: MissingLossResult | None = None
    loss: str | None = None


@dataclass(frozen=True)
class MethodResult:
    """One policy. What the contract does not ask for is None where it was left out.

    Args:
        estimates: The headline first.
        verdict: Show no number without it unless it is "reliable".
        notes: Where propensities and predicted losses came from.
        sentence: What its method does, for a reader.
        as_probabilities: The headline, were actions drawn from the policy's probabilities; None
            where that is what it does.
        in_sample: Whether it learned from stays or patients that it was evaluated on.
        whole_stay: Where it decides throughout, if that was asked.
        negative_control: Its "gain" in something that no action can have changed.
    """

    name: str
    estimates: tuple[EstimateResult, ...]
    diagnostics: DiagnosticsResult | None
    verdict: Label | None
    reasons: tuple[str, ...]
    truth: float | None
    gain: GainResult | None = None
    atenp: AtenpResult | None = None
    sensitivity: SensitivityResult | None = None
    notes: Mapping[str, str] | None = None
    label: str | None = None
    sentence: str | None = None
    as_probabilities: EstimateResult | None = None
    prognosis: PrognosisResult | None = None
    in_sample: bool = False
    whole_stay: WholeStayResult | None = None
    negative_control: NegativeControlResult | None = None
    missing_loss: SensitivityResult | None = None

    def __post_init__(self) -> None:
        if self.estimates and self.verdict is None:
            raise ValueError("has estimates but no verdict")
