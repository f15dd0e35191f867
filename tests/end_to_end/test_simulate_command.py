"""`etips simulate`: worlds as files, with their truth."""

import json

import pytest
from commands import refuse, run

import etips


@pytest.mark.parametrize(("world", "lag"), [("icu-sepsis", 1), ("clinic", 0)])
def test_a_world_is_written_with_its_truth(world, lag, tmp_path):
    (summary,) = json.loads(
        run("simulate", world, "--stays", 30, "--out", tmp_path / "w", "--json")
    )
    data = etips.load(tmp_path / "w")
    assert (data.n_stays, data.lag) == (30, lag)
    assert summary["decisions"] == data.n_decisions
    assert data.true_risk(data.true_logging()) == pytest.approx(
        summary["true risk of the logging policy"]
    )


def test_the_lag_of_icu_sepsis_can_be_chosen_and_of_others_not(tmp_path):
    run("simulate", "icu-sepsis", "--lag", 0, "--stays", 10, "--out", tmp_path / "w")
    assert etips.load(tmp_path / "w").lag == 0
    line = refuse("simulate", "clinic", "--lag", 1, "--stays", 10, "--out", tmp_path / "x")
    assert "--lag" in line
    assert not (tmp_path / "x").exists()


def test_the_same_seed_gives_the_same_bytes(tmp_path):
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        run("simulate", "clinic", "--stays", 10, "--seed", seed, "--out", tmp_path / name)
    steps = {n: (tmp_path / n / "steps.parquet").read_bytes() for n in "abc"}
    assert steps["a"] == steps["b"] != steps["c"]


def test_a_place_that_is_taken_is_refused_unless_told_otherwise(tmp_path):
    run("simulate", "clinic", "--stays", 5, "--out", tmp_path / "w")
    line = refuse("simulate", "clinic", "--stays", 6, "--out", tmp_path / "w")
    assert "exists already" in line
    assert etips.load(tmp_path / "w").n_stays == 5
    run("simulate", "clinic", "--stays", 6, "--out", tmp_path / "w", "--overwrite")
    assert etips.load(tmp_path / "w").n_stays == 6


@pytest.mark.slow
@pytest.mark.parametrize(("world", "n_actions"), [("digits-zeros", 3), ("digits-rows", 10)])
def test_the_digits_are_written_too(world, n_actions, tmp_path):
    run("simulate", world, "--stays", 2000, "--out", tmp_path / "w")
    data = etips.load(tmp_path / "w")
    assert data.n_stays == 2000
    assert data.n_actions == n_actions
