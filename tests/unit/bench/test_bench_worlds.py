"""The worlds of the bench: what teaches never judges, and all that is known is kept."""

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from etips.bench.bench_worlds import (
    BENCH_WORLDS,
    LEVELS,
    NUMBERS,
    TRIAL,
    Arena,
    open_arena,
    read_trial,
    require_world,
)
from etips.errors import FileError, SettingError


@pytest.mark.parametrize("name", ["icu-sepsis-lag0", "icu-sepsis-lag1", "clinic-hidden"])
def test_simulated_worlds_teach_and_judge_by_other_stays_of_one_truth(name, tmp_path):
    arena = Arena(name, 40, 30, seed=3, quick=True)
    arena.prepare(tmp_path)
    parts = open_arena(arena, tmp_path)
    assert (parts.learn.n_stays, parts.test.n_stays) == (40, 30)
    assert parts.learn.lag == parts.test.lag == require_world(name).lag
    assert np.array_equal(parts.learn.truth.expected_loss, parts.test.truth.expected_loss)
    assert not np.array_equal(parts.learn.loss[:20], parts.test.loss[:20])
    assert parts.learn.propensity is not None


def test_labelled_samples_keep_their_first_apart(tmp_path):
    arena = Arena("digits-rows", 30, 20, seed=0, quick=True)
    arena.prepare(tmp_path)
    parts = open_arena(arena, tmp_path)
    assert (parts.learn.n_stays, parts.test.n_stays) == (30, 20)
    assert set(parts.learn.stay.tolist()).isdisjoint(parts.test.stay.tolist())
    right = np.eye(10)[parts.test.true_expected_loss().argmin(axis=1)]
    assert parts.test.true_risk(right) == 0.0


def test_whole_stays_are_known_where_a_world_can_be_walked_through():
    def nobody(asked):
        return np.zeros((asked.n_decisions, 25))

    walked = Arena("icu-sepsis-lag0", 50, 400, seed=0).stay_outcome(nobody)
    assert walked == pytest.approx(0.19, abs=0.06)  # the clinicians within 18 steps
    assert Arena("clinic-usual", 50, 50, seed=0).stay_outcome(nobody) is None


def test_other_names_are_refused():
    with pytest.raises(SettingError, match="must be some of digits-zeros"):
        require_world("clinic")
    assert next(iter(BENCH_WORLDS)) == "digits-zeros"


def test_the_document_has_a_row_for_every_world():
    text = (Path(__file__).parents[3] / "docs" / "bench" / "index.md").read_text()
    assert [name for name in BENCH_WORLDS if f"| `{name}` |" not in text] == []


def write_trial(path, n=60, **changes):
    rng = np.random.default_rng(0)
    names = [*NUMBERS, *LEVELS, "RXASP", "RXHEP", "OCCODE"]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        for _ in range(n):
            row = {name: rng.integers(20, 90) for name in NUMBERS}
            row |= {name: rng.choice([*levels, "N"]) for name, levels in LEVELS.items()}
            row |= {"RXASP": rng.choice(["Y", "N"]), "RXHEP": rng.choice(["N", "L", "M", "H"])}
            writer.writerow({**row, "OCCODE": rng.integers(1, 5), **changes})
    return path


def test_arms_outcome_and_odds_are_those_of_the_design(tmp_path):
    stays, sha256 = read_trial(write_trial(tmp_path / "IST.csv"))
    assert (stays.n_stays, stays.n_actions) == (60, 6)
    assert set(np.unique(stays.logged_propensity)) == {1 / 8, 1 / 4}
    assert set(np.unique(stays.logged_loss)) == {0.0, 1.0}
    packed = tmp_path / "IST.csv.gz"
    packed.write_bytes(gzip.compress((tmp_path / "IST.csv").read_bytes()))
    again, other = read_trial(packed)
    assert np.array_equal(again.action, stays.action)
    assert other != sha256


def test_a_file_that_is_no_trial_is_refused_without_its_values(tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match="must have the columns of the stroke trial"):
        read_trial(other)
    with pytest.raises(FileError, match="cannot be read"):
        read_trial(tmp_path / "none.csv")
    with pytest.raises(FileError, match="does not have") as refusal:
        read_trial(write_trial(tmp_path / "odd.csv", RXHEP="secret"))
    assert "secret" not in str(refusal.value)


def test_a_file_that_has_changed_is_refused_and_halves_share_nobody(tmp_path):
    path = write_trial(tmp_path / "IST.csv")
    _, sha256 = read_trial(path)
    arena = Arena(TRIAL, 20, 20, seed=0, trial=str(path), sha256=sha256)
    parts = arena.make(tmp_path)
    assert (parts.learn.n_stays, parts.test.n_stays) == (20, 20)
    assert set(parts.learn.stay.tolist()).isdisjoint(parts.test.stay.tolist())
    write_trial(path, n=61)
    with pytest.raises(FileError, match="has changed"):
        arena.make(tmp_path)
