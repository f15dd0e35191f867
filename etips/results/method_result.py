"""One policy and the data it was judged on, as results hold them: estimates, diagnosis, verdict.

No count of 1 to 10 people gets in; see `etips.results.summaries`, which makes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from etips.results.estimate_result import DifferenceResult, EstimateResult
from etips.results.exhibits import Label, Record
from etips.results.feature_strength import FeatureStrength
from etips.results.missing_loss_result import MissingBoundsResult, MissingLossResult
from etips.results.negative_control_result import NegativeControlResult
from etips.results.prognosis_result import PrognosisResult
from etips.results.whole_stay_result import WholeStayResult


@dataclass(frozen=True)
class DataSummary:
    """What policies were evaluated on: counts and names, no patient.

    Args:
        n_stays: Stays; None here and below is hidden or not known.
        n_decisions: Decisions.
        n_actions: Actions to choose from.
        lag: 1 if a decision sees only the steps before it.
        n_steps: Steps.
        n_events: Decisions with a loss of 1, where losses are 0 or 1.
        mean_loss: What the clinicians had.
        actions: Their names.
        provenance: Where the data came from.
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
class GainResult(DifferenceResult):
    """The headline risk minus the clinicians'; all None where it would give a few people away.

    Args:
        difference: Below zero is better.
        std_error: Of it.
        low: Lower limit.
        high: Upper limit.
        better: Whether the policy is shown to beat the clinicians: at one decision, and where stays
            have several, over the whole stay too.
        adjusted_p: That it is none, corrected for all policies evaluated together.
        better_at_one_decision: Whether it is shown to beat them where one decision is the policy's
            and all others are as logged.
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
    """How far the log can speak about the policy.

    Args:
        matching_factor: Mean weight; 1 in expectation.
        effective_sample_size: Kish's, of the decisions' weights.
        n_matched: Decisions whose logged action is the policy's likeliest one.
        clipped_share: Decisions whose propensity was raised to the floor.
        max_weight: Largest weight.
    """

    matching_factor: float | None
    effective_sample_size: float | None
    n_matched: int | None
    clipped_share: float | None
    max_weight: float | None


@dataclass(frozen=True)
class GammaBound:
    """Risks that are possible under hidden confounding of at most `gamma`."""

    gamma: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class SensitivityResult:
    """What hidden confounding could do.

    Args:
        gamma_point: Least odds ratio at which the gain may be zero; None for none up to 1000.
        gamma_interval: The same, sampling error included.
        bounds: Of the risk, by rising gamma.
        balanced: Whether the bounds are the sharp ones, for which losses must be predicted.
        features: How strong recorded features are, to hold a hidden one against.
    """

    gamma_point: float | None
    gamma_interval: float | None
    bounds: tuple[GammaBound, ...]
    balanced: bool = False
    features: tuple[FeatureStrength, ...] = ()


@dataclass(frozen=True)
class MethodResult:
    """One policy. What the contract does not ask for is None where somebody left it out.

    Args:
        name: What it is called.
        estimates: The headline first.
        diagnostics: What the verdict looked at.
        verdict: Show no number without it unless it is "reliable".
        reasons: For it.
        truth: The true risk, in simulated worlds.
        gain: Against the clinicians.
        atenp: Matched against other decisions.
        sensitivity: What hidden confounding could do to risk and gain.
        notes: Where propensities and predicted losses came from.
        label: What tables call its method.
        sentence: What its method does, for a reader.
        as_probabilities: The headline, were actions drawn from the policy's probabilities; None
            where that is what it does.
        prognosis: How much better or worse off the weighted patients were to begin with.
        in_sample: Whether it learned from stays or patients that it was evaluated on.
        whole_stay: What becomes of stays in which it decides throughout, if anybody asked.
        negative_control: Its "gain" in something that no action can have changed.
        missing_loss: What risk and gain could be, whoever lacks a loss.
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
    missing_loss: MissingBoundsResult | None = None

    def __post_init__(self) -> None:
        if self.estimates and self.verdict is None:
            raise ValueError("has estimates but no verdict")
