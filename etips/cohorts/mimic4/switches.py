"""How MIMIC-IV is read: the quirks of the original scripts as named switches, in two profiles.

The rules: docs/cohort/mimic4.md; numbers are those of the oddities in docs/cohort/rules.md.
"""

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Final

from etips.cohorts.database import Profile
from etips.cohorts.sepsis3 import rules
from etips.cohorts.sepsis3.rules import AntibioticOrder


class Onset(StrEnum):
    """Who says when an infection is suspected and who has Sepsis-3."""

    RULES = "rules"
    MIMIC_CODE = "mimic-code"  # the concepts that other papers on MIMIC-IV use


@dataclass(frozen=True)
class Reading:
    """Which rows count and what they are; the defaults are the paper profile.

    As in `Rules`, a switch that is on corrects the oddity whose number is given. Oddities 6, 7 and
    29 do not occur here: no row says Rewritten, there is one charting system, and none is marked as
    an error.

    Attributes:
        laboratory_by_subject: A result without an admission belongs to the stays of its patient;
            off, it belongs to none. On in both profiles.
        onset: The rules of the cohort in both profiles.
    """

    antibiotics_by_name: bool = False  # 9
    cultures_from_procedures: bool = False  # 12
    gcs_from_components: bool = False  # 16
    usual_pressure_items: bool = False  # 17
    metavision_devices: bool = False  # 18
    corrected_items: bool = False  # 20
    arterial_gases_only: bool = False
    milligram_rates: bool = False
    laboratory_by_subject: bool = True
    onset: Onset = Onset.RULES

    @property
    def reads_procedures(self) -> bool:
        """Whether the table of procedures is needed at all."""
        return self.cultures_from_procedures or self.corrected_items


SWITCHES: Final = tuple(f.name for f in fields(Reading) if f.type is bool)
_ALL_ON: dict[str, bool] = dict.fromkeys(SWITCHES, True)
WITHOUT_EFFECT: Final = (
    "drop_rewritten_fluids", "complete_fluid_items", "drop_charted_errors", "rate_hold_hours",
)  # fmt: skip
"""Settings of MIMIC-III that have nothing to correct here (oddities 6, 7, 29 and one of 25)."""
# No prescription carries a stay, so that by date is the only order there is.
_PAPER_RULES: Final = replace(
    rules.PAPER, antibiotic_order=AntibioticOrder.DATE, strongest_device=True
)
PAPER: Final = Profile("paper", _PAPER_RULES, Reading())
CLEAN: Final = Profile("clean", rules.CLEAN, replace(Reading(), **_ALL_ON))  # type: ignore[arg-type]
WIDEST: Final = replace(CLEAN.reading, onset=Onset.MIMIC_CODE)
"""A reading that looks at every table and column that any other does."""
PROFILES: Final = {profile.name: profile for profile in (CLEAN, PAPER)}
