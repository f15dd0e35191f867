import numpy as np

from etips.serve.normal_ranges import Range
from etips.serve.tracks import Track, action_chart, signed_bars, value_chart


def test_values_before_the_decision_are_drawn_apart_from_those_after():
    values = np.array([1.0, 2.0, np.nan, 4.0, 5.0])
    drawn = value_chart("x", values, [True, False, False, True, True], 3, Range(1, 3, ""))
    assert drawn.count("<circle") == 4
    assert drawn.count("later") == 2  # the last point and the line to it
    assert drawn.count("hollow") == 1
    assert 'class="normal"' in drawn
    assert 'class="normal"' not in value_chart("x", values, [True] * 5, 0, None)


def test_a_value_that_never_was_and_a_stay_of_one_step_are_drawn_too():
    assert "<svg" in value_chart("x", np.full(3, np.nan), [False] * 3, 0, None)
    assert value_chart("x", np.ones(1), [True], 0, None).count("<circle") == 1


def test_what_was_given_and_advised_stand_at_their_levels():
    track = Track(("none", "low", "high"), (0, 2, None), (1, 2, None))
    drawn = action_chart(track, [0, 1, 2], 1, "x")
    assert (drawn.count("<circle"), drawn.count("hollow c1"), drawn.count(">wait<")) == (2, 2, 1)


def test_of_a_long_scale_only_levels_that_occur_are_drawn():
    track = Track([f"level {k}" for k in range(40)], (3, 3), (7, 3))
    drawn = action_chart(track, [0, 1], 0, "x")
    assert "level 7" in drawn
    assert "level 8" not in drawn


def test_bars_lie_to_either_side_and_names_are_escaped():
    drawn = signed_bars([("<b>", 2.0), ("y", -1.0)], "x")
    assert "&lt;b&gt;" in drawn
    assert ("mark c0" in drawn, "mark c1" in drawn) == (True, True)
    assert "<svg" in signed_bars([("x", 0.0)], "x")
