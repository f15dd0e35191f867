"""A finished cohort: the files it is written as, and what learners read of it."""

import io
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from etips.cohorts.dataset.dose_actions import N_ACTIONS, N_CLASSES, DoseClasses
from etips.cohorts.dataset.funnel import Funnel, draw_funnel, missing_shares
from etips.cohorts.sepsis3.events import ItemUnits, Unread
from etips.cohorts.sepsis3.variables import (
    FINAL_CHARTED,
    LABS,
    SEQUENTIAL_FEATURES,
    STATIC_FEATURES,
    VITALS,
    step_names,
)
from etips.data.coded import Floats32
from etips.data.decisions import Ints
from etips.data.intake import dose_classes
from etips.data.recipe import Recipe
from etips.data.scale import SEPSIS_LOG
from etips.data.schema import Roles, Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError

ACTIONS = tuple(
    f"fluid {fluid}, vasopressor {vaso}" for fluid in range(N_CLASSES) for vaso in range(N_CLASSES)
)


@dataclass(frozen=True, repr=False)
class Cohort:
    """A finished cohort.

    Attributes:
        table: The 59 columns of section 16, sorted by stay and block; elixhauser is null. Two are
            called after the length of a step (`variables.step_names`).
        decisions: Per row of `table`: classes, action, loss (null without a next block), sample
            flags, and whether the stay belongs to the training part.
        onsets: Id of the stay, under the database's own name, and onset (seconds since 1970) of
            all stays with one, minors too.
        sofa_parts: The six parts of SOFA of each row.
        fluid: Classes of the fluid of a step.
        vasopressor: Classes of max_dose_vaso.
        funnel: What happened to the stays.
        units: What each item's rows say about their unit.
        unread: Rows that were seen and not read.
        before_imputation: Rows of pass 1, untidied, and of pass 2, tidied, before imputation.
        kept: Stays kept by pass 1: icustayid, mortality_90d, max_sofa, max_sirs, onset.
        patients: stay and patient of the adult stays with an onset; not written to files.
        label: Name of the database for readers.
        profile: Name of the settings it was built with.
        settings: All of them by name, and the database.
    """

    table: pl.DataFrame
    decisions: pl.DataFrame
    onsets: pl.DataFrame
    sofa_parts: pl.DataFrame
    fluid: DoseClasses
    vasopressor: DoseClasses
    funnel: Funnel
    units: tuple[ItemUnits, ...]
    unread: tuple[Unread, ...]
    before_imputation: tuple[pl.DataFrame, pl.DataFrame]
    kept: pl.DataFrame
    patients: pl.DataFrame
    label: str
    profile: str
    settings: Mapping[str, object]

    @property
    def step_hours(self) -> int:
        """Length of a step."""
        hours = self.settings["step_hours"]
        assert isinstance(hours, int)
        return hours

    def __repr__(self) -> str:
        """Sizes only: a patient's row has no place in a message."""
        stays = self.table["icustayid"].n_unique() if self.table.height else 0
        return f"Cohort(profile={self.profile!r}, n_stays={stays}, n_rows={self.table.height})"

    def files(self) -> dict[str, bytes]:
        """File names and contents of the cohort folder."""
        fluid = step_names(self.step_hours)["input_4hourly"]
        doses = {fluid: asdict(self.fluid), "max_dose_vaso": asdict(self.vasopressor)}
        first, second = self.before_imputation
        audit = {
            "units": [asdict(item) for item in self.units],
            **({"not_read": [asdict(item) for item in self.unread]} if self.unread else {}),
            "missing_before_imputation": {
                "pass 1": missing_shares(first, VITALS + LABS),
                "pass 2": missing_shares(second, FINAL_CHARTED),
            },
        }
        return {
            "table.parquet": _parquet(self.table),
            "onset.parquet": _parquet(self.onsets),
            "decisions.parquet": _parquet(self.decisions),
            "funnel.json": _json(self.funnel.to_document()),
            "doses.json": _json(doses),
            "config.json": _json(dict(self.settings)),
            "audit.json": _json(audit),
            "funnel.svg": draw_funnel(self.funnel).encode(),
        }


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _json(content: object) -> bytes:
    """JSON has neither NaN nor infinity; null says that there is no number."""
    return (json.dumps(_plain(content), indent=2, allow_nan=False) + "\n").encode()


def _plain(content: object) -> object:
    if isinstance(content, dict):
        return {name: _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def to_trajectories(cohort: Cohort) -> Trajectories:
    """Stays, steps, 44 + 3 features, 25 actions and the SOFA-change loss, `lag=1`.

    A step whose next block is missing has no loss, so it is no decision; nor is a stay's first.
    Stays of one patient share a `group`, a number of its own, so that splits are by patient. The
    schema holds the edges of the doses, so that another cohort can be put into these classes
    (`etips.data.alignment`): the doses themselves are features of their step.
    """
    table, decisions = cohort.table, cohort.decisions
    stay = table["icustayid"].to_numpy()
    starts = np.flatnonzero(np.concatenate([[True], stay[1:] != stay[:-1]]))
    renamed = step_names(cohort.step_hours)
    names = tuple(renamed.get(name, name) for name in SEQUENTIAL_FEATURES)
    logarithms = tuple(renamed.get(name, name) for name in SEPSIS_LOG)
    sequence = _features(table, names, logarithms)
    onset = str(cohort.settings.get("onset", "rules"))
    owners = pl.DataFrame({"stay": stay}).join(
        cohort.patients, on="stay", how="left", maintain_order="left"
    )
    # 0, 1, ... by the id of the patient, which itself goes into no file
    patient: Ints = owners["patient"].rank("dense").cast(pl.Int64).to_numpy() - 1
    return Trajectories(
        sequence=sequence,
        offsets=np.append(starts, len(stay)),
        schema=Schema(
            sequence=names,
            n_actions=N_ACTIONS,
            static=tuple(STATIC_FEATURES),
            lag=1,
            actions=ACTIONS,
            roles=Roles(stay="icustayid", step="bloc", group="patient"),
            logarithms=logarithms,
            provenance={
                "cohort": f"Sepsis-3 from {cohort.label}",
                "profile": cohort.profile,
                "step": f"{cohort.step_hours} h",
                **({} if onset == "rules" else {"onset": onset}),  # who says who has Sepsis-3
            },
            recipe=_recipe(cohort, sequence, names, patient),
        ),
        action=decisions["action"].cast(int).to_numpy(),
        loss=decisions["loss"].cast(float).fill_null(float("nan")).to_numpy(),
        static=table.select(STATIC_FEATURES).to_numpy()[starts].astype(np.float32),
        stay=stay[starts].astype(np.int64),
        step=table["bloc"].cast(int).to_numpy(),
        group=patient[starts],
    )


def _recipe(
    cohort: Cohort, sequence: Floats32, names: tuple[str, ...], patient: Ints
) -> Recipe | None:
    """The classes of both doses; none where doses are too few to tell all classes apart."""
    fluid = step_names(cohort.step_hours)["input_4hourly"]
    doses = []
    for column, unit, own, classes in (
        (fluid, "mL", cohort.fluid, cohort.decisions["fluid_class"]),
        ("max_dose_vaso", "mcg/kg/min", cohort.vasopressor, cohort.decisions["vaso_class"]),
    ):
        dose = sequence[:, names.index(column)].astype(np.float64)
        edges = dose_classes.separating_edges(dose, classes.to_numpy() - 1, np.array(own.edges))
        if not all(low < high for low, high in pairwise((0.0, *edges, np.inf))):
            return None
        fitted = dose_classes.DoseClasses.between(column, dose, edges, people=patient, unit=unit)
        doses.append(fitted)
    return Recipe(doses=tuple(doses), missing="refuse")


def _features(table: pl.DataFrame, names: tuple[str, ...], logarithms: tuple[str, ...]) -> Floats32:
    """The sequential features, usable by every learner.

    The table repeats the scripts, so in the paper profile it may hold a ratio over an FiO2 of 0 and
    volumes below 0. A model gets the largest known ratio and 0 instead.
    """
    features = np.empty((table.height, len(names)), np.float32)
    for position, name in enumerate(names):
        column = table[name].to_numpy()
        if np.isnan(column).all():
            rule = "must be known at least once; no row of the source has it"
            raise DataError(f"feature {name}", rule, fix="Give tables that hold its items.")
        if name in logarithms:
            column = column.clip(min=0)
        if name == "PaO2_FiO2":
            known = np.isfinite(column)
            column = np.where(known, column, column[known].max(initial=0.0))
        with np.errstate(over="ignore"):  # beyond single precision: refused as not finite
            features[:, position] = column
    return features
