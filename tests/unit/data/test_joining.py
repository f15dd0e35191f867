"""Stays of several sources as one data set."""

from dataclasses import replace

import numpy as np
import pytest

from etips.data.alignment import align
from etips.data.joining import join
from etips.errors import DataError
from etips.worlds.two_hospitals import SECOND, simulate_place


@pytest.fixture(scope="module")
def parts():
    first = simulate_place(20, seed=1)
    second = align(simulate_place(30, seed=2, place=SECOND), first.schema)
    return {"a": first, "b": replace(second, group=np.arange(30)[::-1] // 2)}


def test_stays_and_patients_keep_apart_though_they_are_numbered_alike(parts):
    joined, source = join(parts)
    assert joined.n_stays == 50
    assert np.unique(joined.stay).size == 50
    assert np.unique(joined.group).size == 20 + 15
    assert source.tolist() == ["a"] * 20 + ["b"] * 30
    for name, own in parts.items():
        again = joined.subset(source == name)
        assert np.array_equal(again.sequence, own.sequence)
        assert np.array_equal(again.logged_action, own.logged_action)
        assert np.array_equal(again.logged_loss, own.logged_loss)
        assert np.array_equal(again.static, own.static)
        assert np.array_equal(again.units, own.units)  # dealt into the same folds


def test_what_must_not_become_a_decision_does_not(parts):
    eligible = np.ones(parts["b"].n_steps, bool)
    eligible[1::2] = False
    joined, source = join({**parts, "b": replace(parts["b"], eligible=eligible)})
    own = joined.subset(source == "b")
    assert np.array_equal(own.eligible, eligible)
    assert joined.subset(source == "a").n_decisions == parts["a"].n_decisions


def test_sources_that_were_not_aligned_are_refused(parts):
    other = simulate_place(30, seed=2, place=SECOND)
    with pytest.raises(DataError, match="same classes of doses"):
        join({"a": parts["a"], "b": other})
    narrow = replace(other.schema, static=("age", "sex"))
    with pytest.raises(DataError, match="same features and actions"):
        join({"a": parts["a"], "b": replace(other, schema=narrow)})
    with pytest.raises(DataError, match="logged actions"):
        join({"a": parts["a"], "b": parts["b"].without_log()})
