"""What a report shows beyond the estimates: one frozen dataclass for each exhibit.

Everything here is an aggregate over at least eleven people, or None. A part that the data cannot
give is `Absent`, which says why; no part is ever left out. Needs neither torch nor numpy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from etips.results.calibration_exhibit import Calibration
from etips.results.path_candidate import PathCandidate

NOTICE: Literal["For research, not for clinical use."] = "For research, not for clinical use."

Record = Mapping[str, object]
"""Names and values of the user's own, JSON-ready: settings, seeds, provenance."""

Label = Literal["reliable", "doubtful", "unusable"]
"""A verdict."""

Share = float | None
"""Part of a whole, 0..1; None is hidden."""


@dataclass(frozen=True)
class Absent:
    """An exhibit that the data cannot give.

    Args:
        absent: Why.
    """

    absent: str


@dataclass(frozen=True)
class DoseGrid:
    """Actions that are pairs of dose classes, row by row.

    Args:
        n_rows: Classes of the first dose.
        n_columns: Classes of the second.
        row: Name of the first.
        column: Name of the second.
        row_levels: What each class of the first is, where that is known.
        column_levels: The same of the second.
    """

    n_rows: int
    n_columns: int
    row: str
    column: str
    row_levels: tuple[str, ...] = ()
    column_levels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (self.n_columns > 0 and self.n_rows > 0):
            raise ValueError("must have rows and columns")
        require_even(self.row_levels or range(self.n_rows), range(self.n_rows))
        require_even(self.column_levels or range(self.n_columns), range(self.n_columns))


@dataclass(frozen=True)
class DoseLevels:
    """The classes of one dose.

    Args:
        name: Of the dose.
        levels: What each class is: its range, and the median of what was given.
    """

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class Actions:
    """How often each action was taken, would be recommended, and could be judged.

    Args:
        names: One entry an action, as in all that follow.
        grid: How they lie, if they are pairs of doses.
        n_logged: Decisions at which it was taken.
        logged_share: The same as a share.
        recommended_share: Decisions at which it is the policy's first choice.
        policy_share: How often the policy would take it.
        supported_share: Decisions at which clinicians take it one time in a hundred or more; None
            where the propensities of all actions are not known.
        effective_n: Kish's effective size of the weights where it was taken.
        doses: Name and classes of each dose, where actions are classes of doses.
    """

    names: tuple[str, ...]
    grid: DoseGrid | None
    n_logged: tuple[int | None, ...]
    logged_share: tuple[Share, ...]
    recommended_share: tuple[Share, ...]
    policy_share: tuple[Share, ...]
    supported_share: tuple[float, ...] | None
    effective_n: tuple[float | None, ...]
    doses: tuple[DoseLevels, ...] = ()

    def __post_init__(self) -> None:
        n_cells = len(self.names) if self.grid is None else self.grid.n_rows * self.grid.n_columns
        support = self.names if self.supported_share is None else self.supported_share
        shares = (self.n_logged, self.logged_share, self.recommended_share, self.policy_share)
        require_even(self.names, *shares, support, self.effective_n, range(n_cells))


@dataclass(frozen=True)
class WeightHistogram:
    """Shares of the decisions, and of the whole weight.

    Args:
        edges: Left edge of each bin; the last is open.
        decisions: Share of the decisions.
        weight: Share of the whole weight.
    """

    edges: tuple[float, ...]
    decisions: tuple[Share, ...]
    weight: tuple[Share, ...]

    def __post_init__(self) -> None:
        require_even(self.edges, self.decisions, self.weight)


@dataclass(frozen=True)
class FeatureBalance:
    """Standardised difference of one feature, before and after weighting.

    Args:
        name: Of the feature.
        before: Decisions that match the policy, not weighted.
        after: Decisions as they are weighted.
        fitted: As they would be weighted by the propensities as fitted, where those are balanced.
    """

    name: str
    before: float | None
    after: float | None
    fitted: float | None = None


@dataclass(frozen=True)
class Balance:
    """Whether weighted patients look like all patients.

    Args:
        threshold: Differences above it are usually called imbalance.
        n_features: Compared in all.
        n_above_before: Beyond the threshold before weighting.
        n_above_after: Likewise after.
        features: The largest differences.
        n_above_fitted: Beyond it with propensities as fitted; None where they are not balanced.
    """

    threshold: float
    n_features: int
    n_above_before: int
    n_above_after: int
    features: tuple[FeatureBalance, ...]
    n_above_fitted: int | None = None


@dataclass(frozen=True)
class Subgroup:
    """Risk of the policy and of the clinicians among the same people; all None where hidden.

    Args:
        level: Which people.
        n_people: Patients, or stays where patients are not known.
        n_decisions: Theirs.
        effective_n: Kish's effective size.
        risk: The policy's, by SNIPS.
        low: Lower limit.
        high: Upper limit.
        logged_risk: The clinicians'.
        gain: The policy's risk minus theirs.
        gain_low: Lower limit.
        gain_high: Upper limit.
        verdict: On these people alone.
    """

    level: str
    n_people: int | None = None
    n_decisions: int | None = None
    effective_n: float | None = None
    risk: float | None = None
    low: float | None = None
    high: float | None = None
    logged_risk: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None
    verdict: Label | None = None


@dataclass(frozen=True)
class SubgroupTable:
    """Subgroups by one feature."""

    feature: str
    rows: tuple[Subgroup, ...]


@dataclass(frozen=True)
class AbstentionRow:
    """The policy where it speaks only if support is good; elsewhere the clinicians decide.

    Args:
        support: Least propensity of what it recommends.
        coverage: Share of the decisions at which it speaks.
        risk: Of both together.
        low: Lower limit.
        high: Upper limit.
        verdict: On both together.
    """

    support: float
    coverage: float
    risk: float | None
    low: float | None
    high: float | None
    verdict: Label | None


@dataclass(frozen=True)
class FlowStage:
    """One step of a cohort.

    Args:
        name: What was asked of a stay.
        count: Stays left after it.
    """

    name: str
    count: int | None


@dataclass(frozen=True)
class Flow:
    """From all stays of the source to the decisions that were evaluated.

    Args:
        source: Whether a cohort told its steps, or only the data are known.
        stages: In order.
        n_steps: Steps of the evaluated stays.
        n_decisions: Decisions among them.
    """

    source: Literal["cohort", "data"]
    stages: tuple[FlowStage, ...]
    n_steps: int | None
    n_decisions: int | None


@dataclass(frozen=True)
class MissingFeature:
    """A feature with gaps.

    Args:
        name: What it is called.
        share: Of the rows in which it was missing.
    """

    name: str
    share: Share


@dataclass(frozen=True)
class Missingness:
    """Missing values.

    Args:
        basis: What was counted.
        n_features: Looked at.
        n_complete: Without any gap.
        features: The others, the most incomplete first.
    """

    basis: str
    n_features: int
    n_complete: int
    features: tuple[MissingFeature, ...]


@dataclass(frozen=True)
class Exhibits:
    """Everything a report shows beyond the estimates.

    Args:
        headline: The policy that overlap, balance and subgroups are about.
        policies: All of them.
        actions: Logged and recommended.
        calibration: Of the propensities.
        weights: Of the decisions.
        balance: Of the features.
        subgroups: By feature, and by time in the stay.
        abstention: At rising support.
        paths: Candidates of each policy that has some.
        flow: Of the cohort.
        missingness: Of its features.
        settings: What the study was run with.
        seeds: Among the settings, and of the simulation.
        versions: Of what computed the numbers.
        fingerprint: Of the data.
        notice: What the results may be used for.
    """

    headline: str
    policies: tuple[str, ...]
    actions: Actions
    calibration: Calibration | Absent
    weights: WeightHistogram
    balance: Balance | Absent
    subgroups: tuple[SubgroupTable, ...]
    abstention: tuple[AbstentionRow, ...] | Absent
    paths: Mapping[str, tuple[PathCandidate, ...]]
    flow: Flow
    missingness: Missingness
    settings: Record
    seeds: Record
    versions: Mapping[str, str]
    fingerprint: str
    notice: Literal["For research, not for clinical use."] = NOTICE


def require_even(*columns: Sequence[object]) -> None:
    """Refuse columns of unequal length."""
    if len({len(column) for column in columns}) > 1:
        raise ValueError("must have columns of equal length")
