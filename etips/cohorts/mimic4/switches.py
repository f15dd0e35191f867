"""How MIMIC-IV is read: the quirks of the original scripts as named switches, in two profiles.

The rules: docs/cohort/mimic4.md; numbers are those of the oddities in docs/cohort/rules.md.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from etips.cohorts.database import Profile
from etips.cohorts.mimic.bedside_reading import BedsideReading, all_on, switches_of
from etips.cohorts.sepsis3 import rules
from etips.cohorts.sepsis3.rules import AntibioticOrder


class Onset(StrEnum):
    """Who says when an infection is suspected and who has Sepsis-3."""

    RULES = "rules"
    MIMIC_CODE = "mimic-code"  # the concepts that other papers on MIMIC-IV use


@dataclass(frozen=True)
class Reading(BedsideReading):
    """Which rows of MIMIC-IV count.

    Oddities 6, 7 and 29 do not occur here: no row says Rewritten, there is one charting system, and
    none is marked as an error.

    Attributes:
        laboratory_by_subject: A result without an admission belongs to the stays of its patient;
            off, it belongs to none. On in both profiles.
        onset: The rules of the cohort in both profiles.
    """

    milligram_rates: bool = False
    laboratory_by_subject: bool = True
    onset: Onset = Onset.RULES


SWITCHES: Final = switches_of(Reading)
WITHOUT_EFFECT: Final = (
    "drop_rewritten_fluids", "complete_fluid_items", "drop_charted_errors", "rate_hold_hours",
)  # fmt: skip
"""Settings of MIMIC-III that have nothing to correct here (oddities 6, 7, 29 and one of 25)."""
# No prescription carries a stay, so that by date is the only order there is.
_PAPER_RULES: Final = replace(
    rules.PAPER, antibiotic_order=AntibioticOrder.DATE, strongest_device=True
)
PAPER: Final = Profile("paper", _PAPER_RULES, Reading())
CLEAN: Final = Profile("clean", rules.CLEAN, all_on(Reading()))
WIDEST: Final = replace(CLEAN.reading, onset=Onset.MIMIC_CODE)
"""A reading that looks at every table and column that any other does."""
PROFILES: Final = {profile.name: profile for profile in (CLEAN, PAPER)}
