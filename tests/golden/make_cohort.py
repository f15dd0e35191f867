"""Make the golden cohort anew: a simulated hospital's, in both profiles, cell by cell.

    python tests/golden/make_cohort.py

writes tests/golden/cohort/PROFILE.parquet (every cell of the final table, of the decisions and of
the onsets) and PROFILE.json (funnel, dose classes, settings, digests of nothing else). Run it only
when a rule was changed on purpose, and say in the commit which cells moved and why. The hospital is
made up; nothing in it comes from a patient.
"""

import contextlib
import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import polars as pl

from etips.cohorts.build import build_cohort
from etips.cohorts.databases import extract, open_source
from etips.cohorts.dataset.sepsis_cohort import Cohort
from etips.worlds.raw_tables import MIMIC3_SHAPE

KEPT = Path(__file__).parent / "cohort"
N_STAYS, SEED = 120, 5
PROFILES = ("paper", "clean")


@contextlib.contextmanager
def hospital() -> Iterator[Path]:
    """Raw tables of the simulated hospital."""
    with tempfile.TemporaryDirectory() as folder:
        MIMIC3_SHAPE.write_simulated(Path(folder) / "raw", n_stays=N_STAYS, seed=SEED, parquet=True)
        yield Path(folder) / "raw"


def built(raw: Path, profile: str) -> Cohort:
    """The cohort of a hospital."""
    with contextlib.closing(open_source(raw)) as source:
        return build_cohort(extract(source, profile))


def frames(cohort: Cohort) -> dict[str, pl.DataFrame]:
    """What is pinned cell by cell; columns that are in the table already are left out."""
    decisions = cohort.decisions.drop("icustayid", "bloc")
    parts = cohort.sofa_parts.drop("icustayid", "bloc", "sofa")
    return {
        "table": pl.concat([cohort.table.drop("elixhauser"), decisions, parts], how="horizontal"),
        "onset": cohort.onsets,
    }


def documents(cohort: Cohort) -> dict[str, object]:
    """What is pinned beside the cells."""
    files = cohort.files()
    kept = {name: json.loads(files[name]) for name in ("doses.json", "audit.json", "config.json")}
    return {"funnel.json": json.loads(json.dumps(asdict(cohort.funnel))), **kept}  # exact counts


def main() -> None:
    """Write every file."""
    KEPT.mkdir(exist_ok=True)
    with hospital() as raw:
        for profile in PROFILES:
            cohort = built(raw, profile)
            for name, frame in frames(cohort).items():
                path = KEPT / f"{profile}_{name}.parquet"
                frame.write_parquet(path, compression="zstd", compression_level=19)
            text = json.dumps(documents(cohort), separators=(",", ":"))
            (KEPT / f"{profile}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
