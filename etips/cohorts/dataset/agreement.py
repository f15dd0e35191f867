"""A finished cohort against published figures (docs/cohort/rules.md section 1).

Only a user with the full database can meet them. On a smaller source every figure that depends on
its size is reported as too small to judge, never as passed.
"""

import csv
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple, Self

import numpy as np
import polars as pl

from etips.cohorts.dataset.dose_actions import DoseClasses
from etips.cohorts.dataset.funnel import Funnel
from etips.cohorts.dataset.sepsis_cohort import Cohort
from etips.cohorts.sepsis3.variables import (
    RULE_HOURS,
    SEQUENTIAL_FEATURES,
    STATIC_FEATURES,
    step_names,
)
from etips.data.storage import MANIFEST
from etips.disclosure import any_few, tells_few
from etips.errors import FileError
from etips.files.artifacts import read_artifact

_TOLERANCE: Final = 0.02  # of the standard deviation of a feature, or of a dose


class Outcome(StrEnum):
    """What a comparison came to."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    TOO_SMALL = "too small to judge"
    NOT_MEASURED = "not measured"
    NOT_PUBLISHED = "nothing published"


class Target(NamedTuple):
    """A published figure and what is accepted for it, both ends included."""

    value: float
    low: float
    high: float


EXACT: Final = {"features": Target(47, 47, 47), "actions": Target(25, 25, 25)}
"""What every cohort must have, whatever its source."""


@dataclass(frozen=True)
class Published:
    """What has been published about the cohort from one database.

    Attributes:
        full_size: ICU stays of the whole database, about; a source with fewer is not judged.
        rows: One figure each: its kind, its name, the value and what is needed to judge it.
    """

    full_size: float = 0
    rows: tuple[Mapping[str, str], ...] = ()

    @classmethod
    def read(cls, text: str) -> Self:
        """Read a list of figures, whose first row is the size of the database."""
        first, *rows = csv.DictReader(text.splitlines())
        return cls(float(first["value"]), tuple(rows))


@dataclass(frozen=True)
class Check:
    """One published figure.

    Attributes:
        quantity: What it is.
        target: The published value; None if there is none.
        found: Ours; None if it is not measured here.
        low: Smallest accepted value; None if it is not judged.
        high: Largest accepted value.
        outcome: Pass, fail, or why neither.
        tells_few: Whether it would tell of 1 to 10 people, and so must not be shown.
    """

    quantity: str
    target: float | None
    found: float | None
    low: float | None
    high: float | None
    outcome: Outcome
    tells_few: bool = False


@dataclass(frozen=True, repr=False)
class Evidence:
    """What a cohort says about itself: its database, its table and its figures."""

    database: str
    table: pl.DataFrame
    funnel: Funnel
    fluid: DoseClasses
    vasopressor: DoseClasses
    step_hours: int = RULE_HOURS

    @classmethod
    def of(cls, cohort: Cohort) -> Self:
        """Take it from a cohort in memory."""
        database, hours = str(cohort.settings["database"]), cohort.step_hours
        doses = cohort.fluid, cohort.vasopressor
        shown = Funnel.from_json(cohort.funnel.to_document())  # as its folder has it
        return cls(database, _usual_names(cohort.table, hours), shown, *doses, hours)

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read it from a cohort folder; one that was changed since it was written is refused."""
        read_artifact(folder, manifest_name=MANIFEST)
        try:
            doses = json.loads((folder / "doses.json").read_bytes())
            settings = json.loads((folder / "config.json").read_bytes())
            hours = settings.get("step_hours", RULE_HOURS)  # cohorts of before know one length
            return cls(
                settings["database"],
                _usual_names(pl.read_parquet(folder / "table.parquet"), hours),
                Funnel.from_json(json.loads((folder / "funnel.json").read_bytes())),
                DoseClasses.from_json(doses[step_names(hours)["input_4hourly"]]),
                DoseClasses.from_json(doses["max_dose_vaso"]),
                hours,
            )
        except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
            fix = "Give the folder that `etips cohort` wrote."
            raise FileError(str(folder), "must be a whole cohort folder", fix=fix) from None


def _usual_names(table: pl.DataFrame, hours: int) -> pl.DataFrame:
    """A table with the names that its columns have at four hours."""
    return table.rename({own: usual for usual, own in step_names(hours).items()})


def validate(evidence: Evidence, published: Published | None) -> list[Check]:
    """Compare a cohort with every published figure; show those that have not been published too.

    Published figures are about steps of four hours, so that others are held against none.
    """
    if published is None or evidence.step_hours != RULE_HOURS:
        published = Published()
    is_full = (evidence.funnel.stages[0].n_stays or 0) >= published.full_size
    measured = measured_figures(evidence)
    hidden = _tell_few(evidence, measured)
    figures = {
        row["name"]: Target(float(row["value"]), float(row["low"]), float(row["high"]))
        for row in published.rows
        if row["kind"] == "figure"
    } or EXACT

    def judge(name: str, target: Target, found: float | None) -> Check:
        if found is None or math.isnan(found):
            outcome, found = Outcome.NOT_MEASURED, None
        elif not (is_full or name in EXACT):
            outcome = Outcome.TOO_SMALL
        else:
            outcome = Outcome.PASS if target.low <= found <= target.high else Outcome.FAIL
        return Check(name, target.value, found, target.low, target.high, outcome, name in hidden)

    return [
        *(judge(name, target, measured.get(name)) for name, target in figures.items()),
        *(
            Check(name, None, found, None, None, Outcome.NOT_PUBLISHED, name in hidden)
            for name, found in measured.items()
            if name not in figures
        ),
        *(judge(*figure) for figure in _doses_and_means(evidence, published)),
    ]


def measured_figures(evidence: Evidence) -> dict[str, float]:
    """Each quantity of a cohort; see `_tell_few` for those that must not be shown."""
    funnel, table = evidence.funnel, evidence.table
    first_pass = next(s.n_stays for s in funnel.stages if s.name.endswith("SOFA below 2"))
    n_stays = table["icustayid"].n_unique()
    n_samples, n_kept = (math.nan if n is None else n for n in (funnel.n_samples["A"], first_pass))
    shortest, mean, longest = funnel.history
    actions = [count or 0 for count in funnel.action_counts]
    deaths = table.group_by("icustayid").agg(pl.col("died_in_hosp").first())["died_in_hosp"]
    return {
        "stays in the final table": n_stays,
        "stays after the first pass": n_kept,
        "rows of the final table": table.height,
        "samples": n_samples,
        "samples per stay": n_samples / max(n_stays, 1),
        "shortest history": shortest,
        "longest history": longest,
        "mean history": mean,
        "mean loss": funnel.mean_loss,
        "features": sum(name in table.columns for name in STATIC_FEATURES + SEQUENTIAL_FEATURES),
        "actions": len(actions),
        "most frequent action (0: no dose)": int(np.argmax(actions)),
        "hospital deaths, share of stays": float(deaths.to_numpy().mean()),
        "rows without vasopressor": float((table["max_dose_vaso"] == 0).to_numpy().mean()),
        "rows without fluid": float((table["input_4hourly"] == 0).to_numpy().mean()),
    }


def _tell_few(evidence: Evidence, figures: Mapping[str, float]) -> set[str]:
    """Quantities that would tell of 1 to 10 people, by themselves or beside what else is shown.

    A share times what it is a share of is a count; its complement is one too.
    """
    known = evidence.funnel.shown.counts
    stays, rows, samples = "stays in the final table", "rows of the final table", "samples"
    hidden = {
        name
        for name in (stays, "stays after the first pass", rows, samples)
        if math.isnan(figures[name]) or tells_few(figures[name], known)
    }
    if hidden & {stays, samples}:
        hidden.add("samples per stay")
    for name, whole in (
        ("mean loss", samples),
        ("hospital deaths, share of stays", stays),
        ("rows without vasopressor", rows),
        ("rows without fluid", rows),
    ):
        total = figures[whole]
        events = 0 if math.isnan(figures[name] * total) else round(figures[name] * total)
        if any_few((events, total - events)):
            hidden.add(name)
    return hidden


def _doses_and_means(
    evidence: Evidence, published: Published
) -> Iterator[tuple[str, Target, float]]:
    """Quantity, target and what was found.

    Edges and medians of doses as printed: half a unit of the last printed digit, or 2 %, is
    allowed. Means of features, of the logarithm of skewed ones, are a smoke test.
    """
    drugs = {
        "input_4hourly": ("IV fluid", evidence.fluid),
        "max_dose_vaso": ("vasopressor", evidence.vasopressor),
    }
    for row in published.rows:
        kind, name, value = row["kind"], row["name"], float(row["value"])
        if kind == "figure":
            continue
        if kind in ("quartile", "median"):
            (drug, classes), number = drugs[name], int(row["number"])
            margin = max(1.0 if value >= 1 else 0.01, _TOLERANCE * value)
            found = classes.edges[number - 1] if kind == "quartile" else classes.medians[number - 1]
            what = "quartile" if kind == "quartile" else "median of class"
            quantity = f"{drug}, {what} {number}"
        else:
            margin, values = _TOLERANCE * float(row["spread"]), evidence.table[name].to_numpy()
            quantity = f"mean of {name}"
            if kind == "log mean":
                quantity = f"mean of ln(0.1 + {name})"
                values = np.log(0.1 + values.clip(min=0))
            found = float(values.mean())
        yield quantity, Target(value, value - margin, value + margin), found
