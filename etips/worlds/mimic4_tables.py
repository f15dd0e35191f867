"""Raw tables of the MIMIC-IV shape: simulated ones for tests anywhere, and copies of a source."""

from typing import Final

from etips.cohorts.mimic.mimic4 import FOLDER_OF, LAYOUT, WIDEST, open_tables, readable
from etips.worlds.mimic4_hospital import simulate_table
from etips.worlds.raw_tables import RawShape

MIMIC4_SHAPE: Final = RawShape(
    layout=LAYOUT,
    files={table: f"{FOLDER_OF[table]}/{table}" for table in readable(WIDEST)},
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
    open_tables=lambda source: open_tables(source, WIDEST),
)
