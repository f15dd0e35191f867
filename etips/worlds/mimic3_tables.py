"""Raw tables of the MIMIC-III shape: simulated ones for tests anywhere, and copies of a source."""

from typing import Final

from etips.cohorts.mimic.mimic3 import CLEAN, Mimic3Extraction
from etips.worlds.mimic3_hospital import simulate_table
from etips.worlds.raw_tables import RawShape

MIMIC3_SHAPE: Final = RawShape(
    layout=Mimic3Extraction.layout,
    files={table: table.upper() for table in Mimic3Extraction.layout.tables},
    id_steps={
        "row_id": 1_000_000_000,
        "subject_id": 1_000_000,
        "hadm_id": 1_000_000,
        "icustay_id": 1_000_000,
    },
    days_between_copies=7,
    simulate=simulate_table,
    open_tables=lambda source: Mimic3Extraction.open_tables(source, CLEAN.reading),
)
write_simulated = MIMIC3_SHAPE.write_simulated
write_copies = MIMIC3_SHAPE.write_copies
