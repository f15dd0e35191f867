"""How MIMIC-III is read: the quirks of the original scripts as named switches, in two profiles.

The rules: docs/cohort/rules.md section 20.
"""

from dataclasses import dataclass
from typing import Final

from etips.cohorts.database import Profile
from etips.cohorts.mimic.bedside_reading import BedsideReading, all_on, switches_of
from etips.cohorts.sepsis3 import rules


@dataclass(frozen=True)
class Reading(BedsideReading):
    """Which rows of MIMIC-III count; further oddities of section 20 that are its own."""

    drop_rewritten_fluids: bool = False  # 6
    complete_fluid_items: bool = False  # 7
    drop_charted_errors: bool = False  # 29


SWITCHES: Final = switches_of(Reading)
PAPER: Final = Profile("paper", rules.PAPER, Reading())
CLEAN: Final = Profile("clean", rules.CLEAN, all_on(Reading()))
PROFILES: Final = {profile.name: profile for profile in (PAPER, CLEAN)}
