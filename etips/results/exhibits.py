"""What a report shows beyond the estimates: one frozen dataclass for each exhibit.

Everything here is an aggregate over at least eleven people, or None. A part that the data cannot
give is `Absent`, which says why; no part is ever left out. Needs neither torch nor numpy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from etips.choice_record import ChoiceRecord
from etips.results.records import NOTICE, Label, PathCandidate, Record

Share = float | None
"""Part of a whole, 0..1; None is hidden."""


@dataclass(frozen=True)
class Absent:
    """An exhibit that the data cannot give."""

    absent: str


@dataclass(frozen=True)
class DoseGrid:
    """Actions that are pairs of dose classes, row by row.

    Args:
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
        levels: What each class is: its range, and the median of what was given.
    """

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class Actions:
    """How often each action was taken, would be recommended, and could be judged.

    Args:
        n_logged: Decisions at which it was taken.
        recommended_share: Decisions at which it is the policy's first choice.
        supported_share: Decisions at which clinicians take it one time in a hundred or more; None
            where the propensities of all actions are not known.
        effective_n: Kish's effective size of the weights where it was taken.
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
class CalibrationPoint:
    """How often something was said to be done, and was.

    Args:
        n_pairs: Pairs of decision and action whose stated propensity is alike; None of an action.
    """

    stated: float | None
    observed: float | None
    std_error: float | None
    n_pairs: int | None = None


@dataclass(frozen=True)
class Calibration:
    """Stated against observed propensity.

    Args:
        used: Whether the estimates used these propensities, not others that are known.
        gap: Largest difference that is not noise.
        actions: Action by action, as `Actions.names` are; pooled bins cannot tell them apart.
        frequency_log_loss: The surprise, had the plain frequencies of the actions been stated.
    """

    used: bool
    bins: tuple[CalibrationPoint, ...]
    error: float
    gap: float
    accuracy: float
    log_loss: float
    actions: tuple[CalibrationPoint, ...] = ()
    frequency_log_loss: float | None = None


@dataclass(frozen=True)
class WeightHistogram:
    """Shares of the decisions, and of the whole weight.

    Args:
        edges: Left edge of each bin; the last is open.
    """

    edges: tuple[float, ...]
    decisions: tuple[Share, ...]
    weight: tuple[Share, ...]

    def __post_init__(self) -> None:
        require_even(self.edges, self.decisions, self.weight)


@dataclass(frozen=True)
class FeatureBalance:
    """Standardised difference of one feature, before and after weighting."""

    name: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Balance:
    """Whether weighted patients look like all patients."""

    threshold: float
    n_features: int
    n_above_before: int
    n_above_after: int
    features: tuple[FeatureBalance, ...]


@dataclass(frozen=True)
class Subgroup:
    """Risk of the policy and of the clinicians among the same people; all None where hidden.

    Args:
        n_people: Patients, or stays where patients are not known.
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
    """

    support: float
    coverage: float
    risk: float | None
    low: float | None
    high: float | None
    verdict: Label | None


@dataclass(frozen=True)
class FlowStage:
    """One step of a cohort."""

    name: str
    count: int | None


@dataclass(frozen=True)
class Flow:
    """From all stays of the source to the decisions that were evaluated."""

    source: Literal["cohort", "data"]
    stages: tuple[FlowStage, ...]
    n_steps: int | None
    n_decisions: int | None


@dataclass(frozen=True)
class MissingFeature:
    """A feature with gaps."""

    name: str
    share: Share


@dataclass(frozen=True)
class Missingness:
    """Missing values."""

    basis: str
    n_features: int
    n_complete: int
    features: tuple[MissingFeature, ...]


@dataclass(frozen=True)
class Exhibits:
    """Everything a report shows beyond the estimates."""

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
    choices: Mapping[str, ChoiceRecord] = field(default_factory=dict)


def require_even(*columns: Sequence[object]) -> None:
    """Refuse columns of unequal length."""
    if len({len(column) for column in columns}) > 1:
        raise ValueError("must have columns of equal length")
