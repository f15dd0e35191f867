"""MIMIC-IV v2.2 and v3.1: its tables, its items, and how they are read as events."""

from typing import Final

from etips.cohorts.database import Database
from etips.cohorts.mimic4.extraction import Mimic4Extraction
from etips.cohorts.mimic4.switches import PROFILES, Onset
from etips.cohorts.mimic4.tables import LAYOUT, is_mimic4

MIMIC4: Final = Database(
    name="mimic4",
    label=LAYOUT.label,
    layout=LAYOUT,
    recognises=is_mimic4,
    profiles=tuple(PROFILES),
    extract=lambda source, profile, changes: Mimic4Extraction(
        source, PROFILES[profile].changed(**changes)
    ),
    definitions=(Onset.MIMIC_CODE,),
)
