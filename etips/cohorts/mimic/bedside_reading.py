"""How the tables of any MIMIC are read: the switches that all of them have."""

from dataclasses import dataclass, fields, replace
from typing import TypeVar


@dataclass(frozen=True)
class BedsideReading:
    """Which rows count and what they are; the defaults are the paper profile.

    As in `Rules`, a switch that is on corrects the oddity of docs/cohort/rules.md, section 20,
    whose number is given.
    """

    antibiotics_by_name: bool = False  # 9
    cultures_from_procedures: bool = False  # 12
    gcs_from_components: bool = False  # 16
    usual_pressure_items: bool = False  # 17
    metavision_devices: bool = False  # 18
    corrected_items: bool = False  # 20
    arterial_gases_only: bool = False  # docs/cohort/mimic4.md

    @property
    def reads_procedures(self) -> bool:
        """Whether the table of procedures is needed at all."""
        return self.cultures_from_procedures or self.corrected_items


R = TypeVar("R", bound=BedsideReading)


def switches_of(kind: type[BedsideReading]) -> tuple[str, ...]:
    """Names of the switches of a reading."""
    return tuple(f.name for f in fields(kind) if f.type is bool)


def all_on(reading: R) -> R:
    """The same with every switch on."""
    return replace(reading, **dict.fromkeys(switches_of(type(reading)), True))
