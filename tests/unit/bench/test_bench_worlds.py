"""The worlds of the bench: what teaches never judges, and all that is known is kept."""

from pathlib import Path

import numpy as np
import pytest

from etips.bench.bench_worlds import BENCH_WORLDS, Arena, require_world, without_propensities
from etips.errors import SettingError


@pytest.mark.parametrize("name", ["icu-sepsis-lag0", "icu-sepsis-lag1", "clinic-hidden"])
def test_simulated_worlds_teach_and_judge_by_other_stays_of_one_truth(name, tmp_path):
    arena = Arena(name, 40, 30, seed=3, quick=True)
    arena.prepare(tmp_path)
    parts = arena.open(tmp_path)
    assert (parts.learn.n_stays, parts.test.n_stays) == (40, 30)
    assert parts.learn.lag == parts.test.lag == require_world(name).lag
    assert np.array_equal(parts.learn.truth.expected_loss, parts.test.truth.expected_loss)
    assert not np.array_equal(parts.learn.loss[:20], parts.test.loss[:20])
    assert parts.learn.propensity is not None
    assert without_propensities(parts.learn).propensity is None


def test_labelled_samples_keep_their_first_apart(tmp_path):
    arena = Arena("digits-rows", 30, 20, seed=0, quick=True)
    arena.prepare(tmp_path)
    parts = arena.open(tmp_path)
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
