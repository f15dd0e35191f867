"""The stroke trial from a file as published; a made-up one stands in for it."""

import csv
import gzip

import numpy as np
import pytest

from etips.bench.bench_worlds import TRIAL, Arena
from etips.bench.stroke_trial import LEVELS, NUMBERS, read_trial
from etips.errors import FileError


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
