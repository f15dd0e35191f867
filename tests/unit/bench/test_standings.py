"""Who is first, who is level: paired differences and their standard error, worked by hand."""

import numpy as np
import pytest

from etips.bench.bench_worlds import Arena
from etips.bench.contestants import Contestant
from etips.bench.standings import difference, stand
from etips.results.bench_result import BenchEntry

COUNT = np.full(4, 2.0)


def losses(*totals):
    return np.stack([np.array(totals, float), COUNT])


def test_a_difference_is_paired_and_its_error_the_larger_of_two():
    known = {("a", 0): losses(1, 1, 1, 1), ("b", 0): losses(1, 2, 1, 2)}
    gap, error = difference(known, "b", "a")
    assert gap == pytest.approx(0.25)
    assert error == pytest.approx(np.sqrt(4 * 0.25 * 4 / 3) / 8)
    known |= {("a", 1): losses(1, 1, 1, 1), ("b", 1): losses(2, 2, 2, 2)}
    gap, error = difference(known, "b", "a")
    assert gap == pytest.approx(0.375)
    assert error == pytest.approx(0.125)  # over two seeds: 0.25 and 0.5
    assert difference(known, "a", "a") == (0.0, 0.0)
    assert difference(known, "c", "a") == (None, None)


def entry(method, risk, seed=0, **more):
    return BenchEntry("clinic-usual", method, seed, risk=risk, verdict="doubtful", **more)


def standing(*people, **told):
    contestants = [Contestant(name, name, "", group) for name, group, *_ in people]
    entries = [entry(name, risk, **told.get(name, {})) for name, _, risk, *_ in people]
    known = {(name, 0): losses(*totals) for name, _, risk, totals in people if risk is not None}
    arenas = [Arena("clinic-usual", 100, 4, 0)]
    ground = {"clinicians": 0.9, "best": 0.1, "clinicians_stay": None}
    return stand(arenas, [ground], entries, known, contestants)


def test_first_level_behind_and_who_was_told_or_failed():
    own = standing(
        ("told", "told", 0.1, (0.2, 0.2, 0.2, 0.2)),
        ("best", "peer", 0.5, (1, 1, 1, 1)),
        ("near", "ours", 0.52, (1, 2, 1, 0.16)),
        ("far", "ours", 0.75, (1, 2, 1, 2)),
        ("lost", "ours", None, ()),
        lost={"failed": "why"},
    )
    assert [row.place for row in own.rows] == ["told", "first", "level", "behind", "failed"]
    assert (own.first, own.best_of_ours, own.ours_level) == ("best", "near", True)
    assert own.row("lost").failed == "why"
    assert own.why == ()


def test_where_ours_is_behind_the_entries_say_why():
    own = standing(
        ("bold", "peer", 0.5, (1, 1, 1, 1)),
        ("careful", "ours", 0.75, (1.5, 1.6, 1.5, 1.4)),
        bold={"rare": 0.4},
        careful={"rare": 0.0},
    )
    assert own.ours_level is False
    assert "bold takes an action that clinicians take in under 5 %" in own.why[0]
    assert "reliable at 0 of 1 seeds" in own.why[1]
