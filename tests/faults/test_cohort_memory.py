"""D6: a cohort ten times the paper's under a limit of 4 GiB is built, or refused in one line."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from etips.cohorts.mimic.mimic3 import PAPER, needed

GIB = 2**30
HOUR = 3600
TYPES = {
    "int64": pl.Int64, "float64": pl.Float64, "string": pl.String, "code": pl.String,
    "timestamp": pl.Datetime("us"),
}  # fmt: skip
VITALS = {211: 90, 455: 110, 456: 75, 618: 20, 646: 97, 678: 99, 198: 13, 190: 0.4}
LABS = {50912: 2.5, 50885: 1.5, 51265: 120, 50821: 90, 50818: 40, 51301: 10}
# Charted for one stay in 200: the imputer needs every feature to be known in each 10,000 rows.
RARE = {
    50971: 4, 50983: 139, 50902: 104, 50931: 130, 51006: 26, 50960: 2, 50893: 8, 50878: 60,
    50861: 50, 51222: 10, 51275: 36, 51274: 15, 51237: 1.4, 50820: 7.38, 50802: -1, 50813: 2,
    50882: 24, 50808: 1.1, 50804: 25, 50862: 3,
}  # fmt: skip


def table(name, **columns):
    """A table with the given columns; the others are null."""
    kinds = needed(PAPER.reading)[name]
    frame = pl.DataFrame(columns).with_columns(
        pl.from_epoch(column, time_unit="s") for column in columns if kinds[column] == "timestamp"
    )
    return frame.select(
        (pl.col(column) if column in columns else pl.lit(None)).cast(TYPES[kind]).alias(column)
        for column, kind in kinds.items()
    )


def thin_hospital(folder, n_stays):
    """Stays of 60 hours, one infection each, charted every four hours: few rows, many steps."""
    stay = np.arange(n_stays) + 200_000
    start = 4_102_444_800 + (stay % 9_000) * 24 * HOUR
    owner, hour = np.repeat(stay, 15), np.tile(np.arange(15) * 4, n_stays)
    at = np.repeat(start, 15) + hour * HOUR

    def charted(items, rows=slice(None), **ids):
        n = at[rows].size
        wobble = 1 + (np.arange(n * len(items)) % 7) / 100
        return {
            "charttime": np.tile(at[rows], len(items)),
            "itemid": np.repeat(list(items), n),
            "valuenum": np.repeat(np.array(list(items.values()), float), n) * wobble,
            **{name: np.tile(column[rows], len(items)) for name, column in ids.items()},
        }

    rows = charted({**VITALS, 581: 80}, icustay_id=owner)
    labs = [table("labevents", **charted(LABS, hadm_id=owner)),
            table("labevents", **charted(RARE, owner % 200 == 0, hadm_id=owner))]  # fmt: skip
    tables = {
        "patients": {"subject_id": stay, "gender": ["M"] * n_stays, "dob": start - 18_250 * 86_400},
        "admissions": {"subject_id": stay, "hadm_id": stay, "dischtime": start + 90 * HOUR},
        "icustays": {
            "subject_id": stay, "hadm_id": stay, "icustay_id": stay, "intime": start,
            "outtime": start + 60 * HOUR,
        },
        "chartevents": {**rows, "value": pl.Series(rows["valuenum"]).cast(pl.String)},
        "microbiologyevents": {"subject_id": stay, "hadm_id": stay, "charttime": start + 20 * HOUR},
        "prescriptions": {
            "row_id": stay, "hadm_id": stay, "icustay_id": stay, "startdate": start + 24 * HOUR,
            "gsn": ["009509"] * n_stays,
        },
        "outputevents": {
            "icustay_id": owner, "charttime": at, "itemid": np.full(owner.size, 226559),
            "value": np.full(owner.size, 150.0),
        },
        "inputevents_mv": {},
        "inputevents_cv": {},
    }  # fmt: skip
    folder.mkdir()
    pl.concat(labs).write_parquet(folder / "labevents.parquet")
    for name, columns in tables.items():
        table(name, **columns).write_parquet(folder / f"{name}.parquet")


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (4 * GIB, 4 * GIB))


def build(source, out):
    command = [str(Path(sys.executable).with_name("etips")), "cohort", str(source)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(
        [*command, "--out", str(out), "--json", "--memory", "1GB"],
        capture_output=True, text=True, check=False, preexec_fn=limited, env=environment,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("n_stays", "codes"), [(4_000, {0}), (209_440, {0, 3})])
def test_a_cohort_ten_times_the_paper_s_is_built_or_refused_within_4_gib(tmp_path, n_stays, codes):
    thin_hospital(tmp_path / "raw", n_stays)
    (tmp_path / "out").mkdir()
    done = build(tmp_path / "raw", tmp_path / "out" / "cohort")
    assert done.returncode in codes, done.stderr
    if done.returncode == 3:
        (line,) = done.stderr.splitlines()
        assert "GiB of memory" in line or "needs more memory" in line
        assert list((tmp_path / "out").iterdir()) == []
    else:
        assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["cohort"]
