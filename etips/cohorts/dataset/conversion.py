"""A finished cohort as Trajectories: the paper's features, actions, losses and history rule.

The schema also holds the edges of the doses, so that another cohort can be put into these classes
(`etips.data.alignment`): the doses themselves are features of their step.
"""

from itertools import pairwise

import numpy as np
import polars as pl

from etips.cohorts.dataset.dose_actions import N_ACTIONS
from etips.cohorts.dataset.sepsis_cohort import Cohort
from etips.cohorts.sepsis3.grid import Ints
from etips.cohorts.sepsis3.variables import SEQUENTIAL_FEATURES, STATIC_FEATURES, step_names
from etips.data.coded import Floats32
from etips.data.intake.dose_classes import DoseClasses, separating_edges
from etips.data.recipe import Recipe
from etips.data.scale import SEPSIS_LOG
from etips.data.schema import Roles, Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError

ACTIONS = tuple(f"fluid {fluid}, vasopressor {vaso}" for fluid in range(5) for vaso in range(5))


def to_trajectories(cohort: Cohort) -> Trajectories:
    """Stays, steps, 44 + 3 features, 25 actions and the SOFA-change loss, `lag=1`.

    A step whose next block is missing has no loss, so it is no decision; nor is a stay's first.
    Stays of one patient share a `group`, a number of its own, so that splits are by patient.
    """
    table, decisions = cohort.table, cohort.decisions
    stay = table["icustayid"].to_numpy()
    starts = np.flatnonzero(np.concatenate([[True], stay[1:] != stay[:-1]]))
    loss = decisions["loss"].cast(float).fill_null(float("nan")).to_numpy()
    renamed = step_names(cohort.step_hours)
    names = tuple(renamed.get(name, name) for name in SEQUENTIAL_FEATURES)
    logarithms = tuple(renamed.get(name, name) for name in SEPSIS_LOG)
    sequence = _features(table, names, logarithms)
    onset = str(cohort.settings.get("onset", "rules"))
    patient = _patients(stay, cohort)
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
        loss=loss,
        static=table.select(STATIC_FEATURES).to_numpy()[starts].astype(np.float32),
        stay=stay[starts].astype(np.int64),
        step=table["bloc"].cast(int).to_numpy(),
        group=patient[starts],
    )


def _patients(stays: Ints, cohort: Cohort) -> Ints:
    """Number of the patient of each row: 0, 1, ... by the id, which itself is not told."""
    owners = pl.DataFrame({"stay": stays}).join(
        cohort.patients, on="stay", how="left", maintain_order="left"
    )
    numbers: Ints = owners["patient"].rank("dense").cast(pl.Int64).to_numpy() - 1
    return numbers


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
        edges = separating_edges(dose, classes.to_numpy() - 1, np.array(own.edges))
        if not all(low < high for low, high in pairwise((0.0, *edges, np.inf))):
            return None
        doses.append(DoseClasses.between(column, dose, edges, people=patient, unit=unit))
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
