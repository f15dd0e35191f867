"""A cohort as Trajectories, on simulated raw tables."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from cohort_building import built

from etips.cohorts.dataset.sepsis_cohort import to_trajectories
from etips.cohorts.sepsis3.variables import SEQUENTIAL_FEATURES, STATIC_FEATURES
from etips.data import Scaler, sofa_change
from etips.data.scale import SEPSIS_LOG
from etips.data.storage import load_trajectories
from etips.errors import DataError
from etips.worlds.raw_tables import MIMIC3_SHAPE


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw") / "tables"
    MIMIC3_SHAPE.write_simulated(folder, n_stays=40, seed=0)
    return built(folder)


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
    """By blocks of a frame and by steps of a stay: the same next step, the same loss."""
    data = to_trajectories(cohort)
    again = data.with_loss(sofa_change)
    assert np.array_equal(data.logged_loss, again.logged_loss)


def test_stays_of_a_patient_share_a_group_that_is_not_the_subject_id(cohort):
    data = to_trajectories(cohort)
    subject = dict(cohort.patients.select("stay", "patient").rows())
    subjects = [subject[stay] for stay in data.stay.tolist()]
    assert len(set(subjects)) < len(subjects)
    assert len(set(zip(subjects, data.group.tolist(), strict=True))) == len(set(subjects))
    assert sorted(set(data.group.tolist())) == list(range(len(set(subjects))))
    assert data.group.tolist() != subjects


def test_the_patient_survives_saving_and_raw_ids_are_nowhere_in_the_files(cohort, tmp_path):
    data = to_trajectories(cohort)
    data.save(tmp_path / "data")
    assert load_trajectories(tmp_path / "data").group.tolist() == data.group.tolist()
    assert "subject_id" not in pl.read_parquet(tmp_path / "data" / "stays.parquet").columns


def changed(cohort, **columns):
    """A cohort whose table has a value changed in its first row."""
    first = pl.int_range(pl.len()) == 0
    return replace(
        cohort,
        table=cohort.table.with_columns(
            pl.when(first).then(pl.lit(value)).otherwise(pl.col(name)).alias(name)
            for name, value in columns.items()
        ),
    )


def test_a_ratio_over_no_oxygen_is_the_largest_known_one(cohort):
    data = to_trajectories(changed(cohort, PaO2_FiO2=float("inf")))
    ratio = data.sequence[:, SEQUENTIAL_FEATURES.index("PaO2_FiO2")]
    assert ratio[0] == ratio[1:].max()


def test_a_volume_below_zero_is_none_so_that_it_has_a_logarithm(cohort):
    data = to_trajectories(changed(cohort, output_4hourly=-50.0, output_total=-70.0))
    assert data.sequence[0, SEQUENTIAL_FEATURES.index("output_total")] == 0
    Scaler(log=SEPSIS_LOG).fit_transform(data)


def test_a_feature_that_no_row_has_is_refused_by_name(cohort):
    table = cohort.table.with_columns(Arterial_BE=pl.lit(float("nan")))
    with pytest.raises(DataError, match=r"^feature Arterial_BE: must be known"):
        to_trajectories(replace(cohort, table=table))


def test_the_schema_holds_the_edges_that_the_actions_came_from(cohort):
    data = to_trajectories(cohort)
    fluid, vaso = data.schema.dosed_features
    assert (fluid.column, vaso.column) == ("input_4hourly", "max_dose_vaso")
    classes = [
        own.apply("dose", data.sequence[:, data.schema.sequence.index(own.column)].astype(float))
        for own in (fluid, vaso)
    ]
    assert np.array_equal(5 * classes[0] + classes[1], data.action)
    assert fluid.edges == pytest.approx(cohort.fluid.edges, rel=0.01)


def test_doses_too_few_for_five_classes_leave_no_edges(cohort):
    table = cohort.table.with_columns(max_dose_vaso=pl.lit(0.1))
    decisions = cohort.decisions.with_columns(vaso_class=pl.lit(3))
    doses = replace(cohort.vasopressor, edges=(0.1, 0.1, 0.1))
    few = replace(cohort, table=table, decisions=decisions, vasopressor=doses)
    assert to_trajectories(few).schema.recipe is None
