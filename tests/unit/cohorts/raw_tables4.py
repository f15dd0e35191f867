"""Raw tables of MIMIC-IV with only a few rows, for the tests beside."""

import contextlib

from etips.cohorts.databases import open_source
from etips.cohorts.mimic.mimic4 import CLEAN, Mimic4Extraction
from etips.worlds.raw_tables import MIMIC4_SHAPE

STAY, PATIENT, ADMISSION, T = 30_000_001, 10_000_001, 20_000_001, "2150-01-02 00:00:00"
COLUMNS = Mimic4Extraction.layout.tables
ICU = {"subject_id": PATIENT, "hadm_id": ADMISSION, "stay_id": STAY,
       "intime": "2150-01-01 00:00:00", "outtime": "2150-01-05 00:00:00"}  # fmt: skip


@contextlib.contextmanager
def extraction(folder, profile=CLEAN, **rows):
    """MIMIC-IV of tables with only the given rows; a missing cell is empty."""
    for name, columns in COLUMNS.items():
        place = folder / f"{MIMIC4_SHAPE.files[name]}.csv"
        place.parent.mkdir(exist_ok=True)
        lines = [[row.get(column, "") for column in columns] for row in rows.get(name, ())]
        text = "\n".join(",".join(map(str, line)) for line in [columns, *lines])
        place.write_text(text + "\n")
    with contextlib.closing(open_source(folder)) as source:
        opened = Mimic4Extraction(source, profile)
        opened.begin()
        yield opened


def prescription(drug="Drug", gsn="", start=T, **changed):
    row = {"hadm_id": ADMISSION, "pharmacy_id": 1, "starttime": start, "drug": drug, "gsn": gsn,
           "route": "IV", "drug_type": "MAIN"}  # fmt: skip
    return {**row, **changed}
