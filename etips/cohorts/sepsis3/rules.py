"""Every quirk of the original scripts' rules as a named switch, in two profiles.

The rules: docs/cohort/rules.md section 20.
"""

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Final

from etips.cohorts.sepsis3.variables import HOUR, RULE_HOURS
from etips.errors import SettingError

STEP_HOURS: Final = (1, 2, 4)
"""Lengths that a step may have."""


class AntibioticOrder(StrEnum):
    """Order in which the antibiotics of a stay are tried (section 6.3)."""

    STAY_FIRST = "stay_first"  # rows with their own stay id first, then by entry
    DATE = "date"


@dataclass(frozen=True)
class Window:
    """Hours kept before and after the onset, both ends included (section 7)."""

    before: float
    after: float

    def __post_init__(self) -> None:
        if not self.before + self.after > 0:
            raise SettingError("window", "must have a length above 0 hours")


@dataclass(frozen=True)
class Potency:
    """Norepinephrine equivalents (section 4.2, oddity 24)."""

    epinephrine: float = 1.0
    phenylephrine: float = 0.45
    dopamine: float = 0.01
    vasopressin_per_unit_per_minute: float = 5.0


@dataclass(frozen=True)
class Rules:
    """Settings of the rules; the defaults are the paper profile.

    A switch that is off does what the original scripts do; switched on, it corrects the oddity of
    section 20 whose number its comment gives. How a database is read has switches of its own.
    """

    antibiotic_order: AntibioticOrder = AntibioticOrder.STAY_FIRST  # 10
    window_1: Window = Window(53, 29)  # 14, section 7: defines the cohort
    window_2: Window = Window(29, 53)  # section 7: the data set
    n_steps: int = 20  # of four hours each; of shorter steps there are as many more
    step_hours: int = 4
    potassium_hold_hours: int = 144  # 21
    rate_hold_hours: int = 0  # 25: of a vasopressor's rate that was charted without an end
    potency: Potency = field(default_factory=Potency)
    least_sofa: int = 2  # section 15.6; 0 where another definition has judged who has Sepsis-3

    drop_deaths_in_collection: bool = False  # 1
    no_scattered_deletion: bool = False  # 1, section 15.5: rows the scripts lose by a slip
    renal_score_needs_urine_record: bool = False  # 2
    close_sofa_holes: bool = False  # 3
    low_pressure_scores_one: bool = False  # 4
    half_open_steps: bool = False  # 5
    add_preadmission_urine: bool = False  # 8
    test_all_pairs: bool = False  # 11
    attach_nearest_stay: bool = False  # 13
    anchor_at_window: bool = False  # 14, section 7
    open_steps_in_icu_only: bool = False  # 15
    unknown_device_is_mask: bool = False  # 18
    strict_fio2: bool = False  # 19
    no_negative_urine: bool = False  # 20
    interpolate_within_stay: bool = False  # 22
    impute_without_delay: bool = False  # 22
    impute_by_all_columns: bool = False  # section 13: none is complete once 22 is corrected
    fit_on_training_only: bool = False  # 22, 31
    true_last_row: bool = False  # 23
    vasopressin_as_charted: bool = False  # 24
    sum_concurrent_drugs: bool = False  # 25
    readmission_within_admission: bool = False  # 27
    limit_fahrenheit: bool = False  # 28
    recheck_in_pass_2: bool = False  # 30
    median_of_duplicates: bool = False  # section 8
    strongest_device: bool = False  # section 8: of several at one time
    plain_intervals: bool = False  # section 4.2

    test_share: float = 0.1  # section 19; matters with fit_on_training_only
    split_seed: int = 0
    stays_per_block: int = 400

    def __post_init__(self) -> None:
        if not 3 <= self.n_steps <= 60:
            raise SettingError("n_steps", "must lie in 3 to 60; a sample needs three steps")
        if self.step_hours not in STEP_HOURS:
            raise SettingError("step_hours", f"must be one of {', '.join(map(str, STEP_HOURS))}")
        if not self.stays_per_block >= 1:
            raise SettingError("stays_per_block", "must be at least 1")
        if not 0 <= self.test_share < 1:
            raise SettingError("test_share", "must lie in 0 to below 1")

    @property
    def step_seconds(self) -> int:
        """Length of a step."""
        return self.step_hours * HOUR

    @property
    def steps_per_rule(self) -> int:
        """Steps in the four hours that rules on volumes speak of."""
        return RULE_HOURS // self.step_hours

    @property
    def most_steps(self) -> int:
        """Steps that a stay may have: the same hours, whatever the length of one."""
        return self.n_steps * self.steps_per_rule


def steps_of_hours(hours: int) -> dict[str, object]:
    """Settings that steps of another length need.

    Shorter steps exclude their right edge: most values are charted on the hour, and oddity 5 would
    count nearly all of them twice.
    """
    return {} if hours == RULE_HOURS else {"step_hours": hours, "half_open_steps": True}


PAPER: Final = Rules()
SWITCHES: Final = tuple(f.name for f in fields(Rules) if f.type is bool)
_ALL_ON: dict[str, bool] = dict.fromkeys(SWITCHES, True)
CLEAN: Final = replace(
    PAPER,
    antibiotic_order=AntibioticOrder.DATE,
    window_1=Window(24, 48),
    window_2=Window(24, 48),
    n_steps=18,
    potassium_hold_hours=14,
    rate_hold_hours=4,
    **_ALL_ON,  # type: ignore[arg-type]
)
