"""A finished cohort as Trajectories: the paper's features, actions, losses and history rule."""

import numpy as np

from etips.cohorts.mimic3.actions import N_ACTIONS
from etips.cohorts.mimic3.build import Cohort
from etips.cohorts.mimic3.columns import SEQUENTIAL_FEATURES, STATIC_FEATURES
from etips.data.scale import SEPSIS_LOG
from etips.data.schema import Roles, Schema
from etips.data.trajectories import Trajectories

ACTIONS = tuple(f"fluid {fluid}, vasopressor {vaso}" for fluid in range(5) for vaso in range(5))


def to_trajectories(cohort: Cohort) -> Trajectories:
    """Stays, four-hour steps, 44 + 3 features, 25 actions and the SOFA-change loss, `lag=1`.

    A step whose next block is missing has no loss, so it is no decision; nor is a stay's first.
    """
    table, decisions = cohort.table, cohort.decisions
    stay = table["icustayid"].to_numpy()
    starts = np.flatnonzero(np.concatenate([[True], stay[1:] != stay[:-1]]))
    loss = decisions["loss"].cast(float).fill_null(float("nan")).to_numpy()
    return Trajectories(
        sequence=table.select(SEQUENTIAL_FEATURES).to_numpy().astype(np.float32),
        offsets=np.append(starts, len(stay)),
        schema=Schema(
            sequence=tuple(SEQUENTIAL_FEATURES),
            n_actions=N_ACTIONS,
            static=tuple(STATIC_FEATURES),
            lag=1,
            actions=ACTIONS,
            roles=Roles(stay="icustayid", step="bloc"),
            logarithms=SEPSIS_LOG,
            provenance={"cohort": "Sepsis-3 from MIMIC-III", "profile": cohort.funnel.profile},
        ),
        action=decisions["action"].cast(int).to_numpy(),
        loss=loss,
        static=table.select(STATIC_FEATURES).to_numpy()[starts].astype(np.float32),
        stay=stay[starts].astype(np.int64),
        step=table["bloc"].cast(int).to_numpy(),
    )
