"""A finished cohort against the published figures (docs/cohort/rules.md section 1).

Only a user with the full database can meet them. On a smaller source every figure that depends on
its size is reported as too small to judge, never as passed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import polars as pl

from etips.cohorts.mimic3.cohort import Cohort
from etips.cohorts.mimic3.columns import SEQUENTIAL_FEATURES, STATIC_FEATURES
from etips.data.trajectory_writer import MANIFEST
from etips.disclosure import are_few
from etips.errors import FileError
from etips.files.artifacts import read_artifact

FULL_SIZE: Final = 60_000  # ICU stays; MIMIC-III v1.4 has 61,532


class Outcome(StrEnum):
    """What a comparison came to."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    TOO_SMALL = "too small to judge"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Check:
    """One published figure.

    Attributes:
        quantity: What it is.
        target: The published value.
        found: Ours; None if it is not measured here.
        low: Smallest accepted value.
        high: Largest accepted value.
        outcome: Pass, fail, or why neither.
        tells_few: Whether it would tell of 1 to 10 people, and so must not be shown.
    """

    quantity: str
    target: float
    found: float | None
    low: float
    high: float
    outcome: Outcome
    tells_few: bool = False


@dataclass(frozen=True, repr=False)
class Evidence:
    """What a cohort says about itself: its table, its decisions and its figures."""

    table: pl.DataFrame
    decisions: pl.DataFrame
    funnel: Mapping[str, Any]
    doses: Mapping[str, Any]

    @classmethod
    def of(cls, cohort: Cohort) -> Self:
        """Take it from a cohort in memory."""
        contents = cohort.files()
        return cls(
            cohort.table,
            cohort.decisions,
            json.loads(contents["funnel.json"]),
            json.loads(contents["doses.json"]),
        )

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read it from a cohort folder; one that was changed since it was written is refused."""
        read_artifact(folder, manifest_name=MANIFEST)
        try:
            return cls(
                pl.read_parquet(folder / "table.parquet"),
                pl.read_parquet(folder / "decisions.parquet"),
                json.loads((folder / "funnel.json").read_bytes()),
                json.loads((folder / "doses.json").read_bytes()),
            )
        except (OSError, ValueError, pl.exceptions.PolarsError):
            fix = "Give the folder that `etips cohort` wrote."
            raise FileError(str(folder), "must be a whole cohort folder", fix=fix) from None

    @property
    def is_full(self) -> bool:
        """Whether the source was the size of MIMIC-III."""
        return bool(self.funnel["stages"][0]["n_stays"] >= FULL_SIZE)


# Mean and standard deviation of a feature in a public run of the scripts on v1.4.
_MEANS: Final = {
    "age": (23608, 6051), "Weight_kg": (83.21, 24.37), "GCS": (12.58, 3.43), "HR": (87.00, 16.80),
    "SysBP": (119.97, 20.34), "MeanBP": (78.15, 13.45), "DiaBP": (57.02, 13.32),
    "RR": (20.21, 5.20), "Temp_C": (36.91, 2.56), "FiO2_1": (0.460, 0.183),
    "Potassium": (4.079, 0.559), "Sodium": (138.7, 4.92), "Chloride": (104.8, 6.29),
    "Glucose": (138.9, 50.9), "Magnesium": (2.060, 0.352), "Calcium": (8.311, 0.801),
    "Hb": (10.30, 1.73), "WBC_count": (12.21, 8.18), "Platelets_count": (228.1, 137.4),
    "PTT": (37.79, 19.38), "PT": (16.15, 6.61), "Arterial_pH": (7.391, 0.074),
    "paO2": (124.9, 72.3), "paCO2": (41.91, 10.79), "Arterial_BE": (0.33, 5.02),
    "HCO3": (24.67, 5.10), "Arterial_lactate": (2.049, 1.663), "SOFA": (6.331, 3.491),
    "SIRS": (1.612, 1.046), "Shock_Index": (0.746, 0.197), "PaO2_FiO2": (310.8, 222.8),
    "cumulated_balance": (1710, 14163),
}  # fmt: skip
_LOG_MEANS: Final = {
    "max_dose_vaso": (-2.122, 0.526), "SpO2": (4.574, 0.029), "BUN": (3.139, 0.703),
    "Creatinine": (0.208, 0.634), "SGOT": (3.967, 1.128), "SGPT": (3.697, 1.213),
    "Total_bili": (0.113, 1.102), "INR": (0.408, 0.321), "input_total": (7.588, 3.036),
    "input_4hourly": (2.971, 3.513), "output_total": (6.764, 3.518),
    "output_4hourly": (3.913, 3.326),
}  # fmt: skip
_TOLERANCE: Final = 0.02  # of the standard deviation
_EDGES: Final = {
    "input_4hourly": ("IV fluid", (48, 150, 500), (30, 80, 284, 874)),
    "max_dose_vaso": ("vasopressor", (0.08, 0.2, 0.45), (0.04, 0.13, 0.27, 0.78)),
}


def validate(evidence: Evidence) -> list[Check]:
    """Compare a cohort with every figure of section 1.

    Args:
        evidence: From a cohort in memory or a folder.
    """
    return [
        *_counts(evidence),
        *_shares(evidence),
        *_dose_bins(evidence),
        *_feature_means(evidence),
    ]


def _check(
    evidence: Evidence,
    quantity: str,
    target: float,
    found: float | None,
    accept: tuple[float, float],
    *,
    any_size: bool = False,
    n_people: int = 0,
) -> Check:
    low, high = accept
    if found is None:
        outcome = Outcome.NOT_MEASURED
    elif not (evidence.is_full or any_size):
        outcome = Outcome.TOO_SMALL
    else:
        outcome = Outcome.PASS if low <= found <= high else Outcome.FAIL
    return Check(quantity, target, found, low, high, outcome, are_few(n_people))


def _counts(evidence: Evidence) -> list[Check]:
    funnel, table = evidence.funnel, evidence.table
    n_stays, n_samples = table["icustayid"].n_unique(), funnel["n_samples"]["A"]
    first_pass = [
        stage["n_stays"] for stage in funnel["stages"] if stage["name"].endswith("SOFA below 2")
    ]
    n_features = sum(name in table.columns for name in STATIC_FEATURES + SEQUENTIAL_FEATURES)
    shortest, mean, longest = funnel["history"]
    figures = [
        ("rows of the final table", 278_568, table.height, (277_500, 279_700)),
        ("samples", 224_333, n_samples, (224_333 * 0.99, 224_333 * 1.01)),
        ("samples per stay", 10.711, n_samples / max(n_stays, 1), (10.6, 10.8)),
        ("shortest history", 1, shortest, (1, 1)),
        ("longest history", 18, longest, (18, 18)),
        ("mean history", 7.2, mean, (7.1, 7.3)),
        ("mean loss", 0.498, funnel["mean_loss"], (0.493, 0.503)),
        ("accuracy of the predictive model", 0.571, None, (0.56, 0.58)),
    ]
    most_frequent = int(np.argmax(funnel["action_counts"]))
    stays = [
        ("stays in the final table", 20_944, n_stays, (20_900, 21_000)),
        ("stays after the first pass", 21_333, first_pass[0], (21_250, 21_420)),
    ]
    return [
        *(_check(evidence, *figure, n_people=figure[2]) for figure in stays),
        *(_check(evidence, *figure) for figure in figures),
        _check(evidence, "features", 47, n_features, (47, 47), any_size=True),
        _check(evidence, "actions", 25, len(funnel["action_counts"]), (25, 25), any_size=True),
        _check(evidence, "most frequent action (0: no dose)", 0, most_frequent, (0, 0)),
    ]


def _shares(evidence: Evidence) -> list[Check]:
    table = evidence.table
    deaths = table.group_by("icustayid").agg(pl.col("died_in_hosp").first())["died_in_hosp"]
    shares = [
        ("rows without vasopressor", 0.850, table["max_dose_vaso"] == 0, (0.84, 0.86)),
        ("rows without fluid", 0.278, table["input_4hourly"] == 0, (0.27, 0.29)),
    ]
    return [
        _check(
            evidence,
            "hospital deaths, share of stays",
            2_883 / 20_940,
            float(deaths.to_numpy().mean()),
            (0.13, 0.145),
            n_people=int(deaths.sum()),
        ),
        *(
            _check(evidence, name, target, float(found.to_numpy().mean()), accept)
            for name, target, found, accept in shares
        ),
    ]


def _dose_bins(evidence: Evidence) -> list[Check]:
    """Edges and medians as printed; half a unit of the last printed digit, or 2 %, is allowed."""
    checks = []
    for column, (drug, edges, medians) in _EDGES.items():
        found = evidence.doses[column]
        pairs = [
            *(
                (f"{drug}, quartile {i + 1}", *p)
                for i, p in enumerate(_pair(edges, found["edges"]))
            ),
            *(
                (f"{drug}, median of class {i + 2}", *p)
                for i, p in enumerate(_pair(medians, found["medians"][1:]))
            ),
        ]
        for name, target, value in pairs:
            unit = 1.0 if target >= 1 else 0.01
            margin = max(unit, 0.02 * target)
            accept = (target - margin, target + margin)
            checks.append(_check(evidence, name, target, value, accept))
    return checks


def _pair(targets: tuple[float, ...], found: list[float]) -> list[tuple[float, float]]:
    return list(zip(targets, found, strict=True))


def _feature_means(evidence: Evidence) -> list[Check]:
    """A smoke test: the mean of each feature, of its logarithm for skewed ones."""
    checks = []
    for means, label in ((_MEANS, "mean of {}"), (_LOG_MEANS, "mean of ln(0.1 + {})")):
        for name, (mean, spread) in means.items():
            values = evidence.table[name].to_numpy()
            if means is _LOG_MEANS:
                values = np.log(0.1 + values.clip(min=0))
            found = float(values.mean())
            accept = (mean - _TOLERANCE * spread, mean + _TOLERANCE * spread)
            checks.append(_check(evidence, label.format(name), mean, found, accept))
    return checks
