"""MIMIC-III v1.4: its tables, its items, and how they are read as events."""

from typing import Final

from etips.cohorts.database import Database
from etips.cohorts.mimic3.extraction import Mimic3Extraction
from etips.cohorts.mimic3.switches import PROFILES
from etips.cohorts.mimic3.tables import LAYOUT, is_mimic3
from etips.cohorts.mimic3.targets import PUBLISHED

MIMIC3: Final = Database(
    name="mimic3",
    label=LAYOUT.label,
    layout=LAYOUT,
    recognises=is_mimic3,
    profiles=tuple(PROFILES),
    extract=lambda source, profile, changes: Mimic3Extraction(
        source, PROFILES[profile].changed(**changes)
    ),
    published=PUBLISHED,
)
