"""A table looked at before anything is learned."""

import json

import numpy as np
import pyarrow as pa
import pytest

import etips
from etips.checks.examination import check, try_reading
from etips.data.tables.table_spec import TableSpec, read_columns
from etips.errors import ResourceError


def log(n_stays=60, n_steps=4, **more):
    rng = np.random.default_rng(0)
    n = n_stays * n_steps
    return pa.table(
        {
            "stay_id": np.repeat(np.arange(n_stays), n_steps),
            "hour": np.tile(np.arange(n_steps), n_stays),
            "treatment": rng.integers(0, 2, n),
            "died": rng.integers(0, 2, n),
            "hr": rng.normal(80, 9, n),
            "age": np.repeat(rng.integers(20, 90, n_stays), n_steps),
            **more,
        }
    )


SAID = {"stay": "stay_id", "step": "hour", "action": "treatment", "loss": "died"}


def test_everything_is_guessed_and_counted():
    made = check(log())
    assert made.columns == TableSpec(
        stay="stay_id", step="hour", action=("treatment",), loss="died", static=("age",)
    )
    assert {own.field for own in made.guesses} == {"stay", "step", "action", "loss", "static"}
    assert made.faults == ()
    assert (made.n_rows, made.n_stays, made.n_decisions) == (240, 60, 180)
    assert (made.lag, made.lost_to_lag) == (1, 60)
    assert sum(own.decisions for own in made.actions) == 180
    assert [own.name for own in made.features] == ["hr", "age"]
    assert made.features[1].static
    assert made.mean_loss == pytest.approx(0.5, abs=0.1)


def test_what_was_said_is_no_guess():
    made = check(log(), **SAID, static="age", lag=0)
    assert made.guesses == ()
    assert made.lost_to_lag == 0
    assert made.n_decisions == 240


def test_it_tells_how_large_an_effect_the_log_could_show():
    small, large = (check(log(n_stays=n), **SAID) for n in (60, 960))
    assert {own.action for own in small.contrasts} == {"0", "1"}
    ratio = small.contrasts[0].difference / large.contrasts[0].difference
    assert 2.5 < ratio < 6  # sixteen times the stays: about a quarter
    assert 0.01 < large.contrasts[0].difference < 0.1


def test_a_table_that_names_neither_treatment_nor_outcome_says_so():
    made = check(pa.table({"v": [1.5, 2.5, 3.5], "w": [1.0, 2.0, 3.0]}))
    assert [line.split(":")[0] for line in made.faults[:2]] == ["action", "loss"]


def test_counts_of_few_people_are_hidden_and_cannot_be_worked_out():
    rare = np.zeros(240, int)
    rare[[1, 2, 5]] = 1
    rare[100:] = 2
    made = check(log(treatment=rare), **SAID)
    hidden = [own.name for own in made.actions if own.decisions is None]
    assert "1" in hidden
    assert len(hidden) >= 2
    assert not set(hidden) & {own.action for own in made.contrasts}


def test_rows_less_decisions_are_not_told_where_they_are_few():
    died = [None, None, None, *np.random.default_rng(0).integers(0, 2, 57).tolist()]
    table = pa.table(
        {
            "patient_id": np.arange(60),
            "step": np.zeros(60, int),
            "treatment": np.arange(60) % 2,
            "died": died,
            "age": np.arange(60) % 7,
        }
    )
    made = check(table, stay="patient_id", step="step", lag=0)
    assert made.n_decisions == 57
    assert (made.n_rows, made.n_stays) == (None, None)


def test_it_can_be_kept_as_json_and_as_a_file(tmp_path):
    made = etips.check(log(), **SAID)
    assert isinstance(made, etips.TableCheck)
    document = json.loads(json.dumps(made.to_json(), allow_nan=False))
    assert document["columns"]["action"] == "treatment"
    made.save(tmp_path / "table.toml", data="log.csv")
    assert read_columns(tmp_path / "table.toml") == made.columns
    with pytest.raises(etips.FileError, match="exists already"):
        made.save(tmp_path / "table.toml")
    made.save(tmp_path / "table.toml", overwrite=True)


def test_an_argument_that_read_table_does_not_have_is_refused():
    with pytest.raises(etips.SettingError, match=r"^colour: is not an argument"):
        check(log(), colour="red")
    with pytest.raises(etips.DataError, match="at least one row"):
        check(log().slice(0, 0))


def test_faults_do_not_stop_it():
    hr = np.where(np.arange(240) == 7, np.inf, 80.0)
    made = check(log(hr=hr, bp=np.full(240, 120.0)))
    assert len(made.faults) == 1
    assert "column hr" in made.faults[0]
    assert made.n_decisions == 180
    assert {own.name for own in made.features} == {"hr", "bp", "age"}


def test_a_log_that_cannot_be_read_is_still_described():
    made = check(log(), **{**SAID, "loss": "nonsense"})
    assert any("nonsense" in line for line in made.faults)
    assert (made.n_decisions, made.actions) == (None, ())
    assert made.features
    assert made.n_stays == 60


def test_a_slip_among_numbers_is_a_fault_and_no_free_text():
    slip = [f"{n}.5" for n in range(239)] + ["by hand"]
    made = check(log(lactate=slip))
    assert [own for own in made.suspects if own.column == "lactate"] == []
    assert len(made.faults) == 1
    assert "column lactate" in made.faults[0]
    assert made.n_decisions == 180


def test_remarks_of_opening_a_file_are_told_once(tmp_path):
    rows = [f"{n // 4};{n % 4};{n % 2};{n % 2};{n % 7},5" for n in range(80)]
    (tmp_path / "log.csv").write_text("\n".join(["stay;hour;drug;died;lactate", *rows]))
    made = check(tmp_path / "log.csv")
    assert sum("decimal commas" in line for line in made.remarks) == 1
    assert made.faults == ()


@pytest.mark.parametrize("stay", [pa.nulls(30), pa.array([[1, 2]] * 30), pa.array([b"x"] * 30)])
def test_a_stay_that_cannot_be_compared_is_a_fault_like_any_other(stay):
    table = pa.table({"bed": stay, "drug": np.arange(30) % 2, "died": np.arange(30) % 2})
    made = check(table, stay="bed")
    assert made.faults


ROLES = TableSpec(stay="stay", step="t", action=("drug",), loss="died")
GOOD = {
    "stay": [1, 1, 1, 2, 2, 2],
    "t": [0, 1, 2, 0, 1, 2],
    "drug": [0, 1, 0, 1, 0, 1],
    "died": [0, 0, 1, 0, 0, 0],
    "hr": [80.0, 81.0, 82.0, 83.0, 84.0, 85.0],
}


def trial(columns=ROLES, **more):
    table = pa.table({**GOOD, **more})
    features = set(table.column_names) - {"stay", "t", "drug", "died"}
    return try_reading(table, columns, features)


def test_a_machine_at_fault_is_no_fault_of_the_table(monkeypatch):
    def full(*_, **__):
        raise ResourceError("disk", "is full")

    monkeypatch.setattr("etips.checks.examination.read_by", full)
    with pytest.raises(ResourceError):
        trial()
