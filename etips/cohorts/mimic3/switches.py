"""How MIMIC-III is read: the quirks of the original scripts as named switches, in two profiles.

The rules: docs/cohort/rules.md section 20.
"""

from dataclasses import dataclass, fields, replace
from typing import Final

from etips.cohorts.database import Profile
from etips.cohorts.sepsis3 import rules


@dataclass(frozen=True)
class Reading:
    """Which rows count and what they are; the defaults are the paper profile.

    As in `Rules`, a switch that is on corrects the oddity of section 20 whose number is given.
    """

    drop_rewritten_fluids: bool = False  # 6
    complete_fluid_items: bool = False  # 7
    antibiotics_by_name: bool = False  # 9
    cultures_from_procedures: bool = False  # 12
    gcs_from_components: bool = False  # 16
    usual_pressure_items: bool = False  # 17
    metavision_devices: bool = False  # 18
    corrected_items: bool = False  # 20
    arterial_gases_only: bool = False  # docs/cohort/mimic4.md
    drop_charted_errors: bool = False  # 29

    @property
    def reads_procedures(self) -> bool:
        """Whether the table of procedures is needed at all."""
        return self.cultures_from_procedures or self.corrected_items


SWITCHES: Final = tuple(f.name for f in fields(Reading) if f.type is bool)
_ALL_ON: dict[str, bool] = dict.fromkeys(SWITCHES, True)
PAPER: Final = Profile("paper", rules.PAPER, Reading())
CLEAN: Final = Profile("clean", rules.CLEAN, replace(Reading(), **_ALL_ON))
PROFILES: Final = {profile.name: profile for profile in (PAPER, CLEAN)}
