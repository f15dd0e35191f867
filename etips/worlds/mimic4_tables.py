"""Raw tables of the MIMIC-IV shape: simulated ones for tests anywhere, and copies of a source."""

from typing import Final

from etips.cohorts.mimic.mimic4 import WIDEST, Mimic4Extraction
from etips.worlds.mimic4_hospital import simulate_table
from etips.worlds.raw_tables import RawShape

_HOSPITAL = ("patients", "admissions", "labevents", "microbiologyevents", "prescriptions")


def _folder(table: str) -> str:
    return "hosp" if table in _HOSPITAL else "icu"


MIMIC4_SHAPE: Final = RawShape(
    layout=Mimic4Extraction.layout,
    files={table: f"{_folder(table)}/{table}" for table in Mimic4Extraction.layout.tables},
    id_steps={
        "subject_id": 10_000_000,
        "hadm_id": 10_000_000,
        "stay_id": 10_000_000,
        "specimen_id": 100_000_000_000,
        "micro_specimen_id": 100_000_000_000,
        "pharmacy_id": 1_000_000_000,
    },
    days_between_copies=0,  # an age is counted in calendar years, which no shift leaves alone
    simulate=simulate_table,
    open_tables=lambda source: Mimic4Extraction.open_tables(source, WIDEST),
)
