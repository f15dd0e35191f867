"""A cohort as Trajectories, on simulated raw tables."""

import contextlib

import numpy as np
import pytest

from etips.cohorts.mimic3 import PAPER, build_cohort, open_source
from etips.cohorts.mimic3.columns import SEQUENTIAL_FEATURES, STATIC_FEATURES
from etips.cohorts.mimic3.trajectories import to_trajectories
from etips.data import sofa_change
from etips.worlds.mimic3_tables import write_simulated


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw") / "tables"
    write_simulated(folder, n_stays=40, seed=0)
    with contextlib.closing(open_source(str(folder))) as source:
        return build_cohort(source, PAPER)


def test_decisions_are_the_samples_of_reading_a(cohort):
    data = to_trajectories(cohort)
    assert data.n_decisions == cohort.funnel.n_samples["A"]
    flagged = cohort.decisions["sample_A"].to_numpy()
    assert data.decision_rows.tolist() == np.flatnonzero(flagged).tolist()
    assert (data.n_actions, data.lag) == (25, 1)


def test_features_are_the_table_s_in_the_paper_s_order(cohort):
    data = to_trajectories(cohort)
    assert data.schema.sequence == tuple(SEQUENTIAL_FEATURES)
    assert (len(data.schema.sequence), len(data.schema.static)) == (44, 3)
    for position, name in enumerate(SEQUENTIAL_FEATURES):
        assert data.sequence[:, position] == pytest.approx(cohort.table[name].to_numpy(), rel=1e-6)
    ages = cohort.table.group_by("icustayid", maintain_order=True).first()["age"].to_numpy()
    assert data.static[:, STATIC_FEATURES.index("age")] == pytest.approx(ages, rel=1e-6)


def test_the_loss_is_that_of_the_data_model(cohort):
    """Two implementations of one rule: the cohort's frames and the function of a stay."""
    data = to_trajectories(cohort)
    again = data.with_loss(sofa_change)
    assert np.array_equal(data.logged_loss, again.logged_loss)


def test_skewed_features_are_marked_for_their_logarithm(cohort):
    assert "max_dose_vaso" in to_trajectories(cohort).schema.logarithms
