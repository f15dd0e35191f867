"""P2: no count of 1 to 10 people is shown, nor can one be worked out from what is shown."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from etips.disclosure import (
    FEW,
    any_few,
    are_few,
    hide_steps,
    hide_together,
    is_small,
    part_told,
    rounds_to_few,
    shown_apart,
    shown_count,
    shown_flow,
    shown_funnel,
    shown_parts,
    tells_few,
)

TABLES = 200
LEAST_ROOM = 10


def room(total, known, lowest):
    """How far each hidden cell may lie, by linear programming: totals and shown cells are known."""
    hidden = [place for place, value in enumerate(known) if value is None]
    rest = total - sum(value for value in known if value is not None)
    found = {}
    for place, cell in enumerate(hidden):
        goal = np.zeros(len(hidden))
        goal[place] = 1
        ends = []
        for sign in (1, -1):
            answer = linprog(
                sign * goal,
                A_eq=np.ones((1, len(hidden))),
                b_eq=[rest],
                bounds=[(lowest, None)] * len(hidden),
            )
            assert answer.status == 0
            ends.append(sign * answer.fun)
        found[cell] = ends[1] - ends[0]
    return found


def random_table(rng):
    """People, decisions and events of up to eight groups, small ones among them."""
    n = int(rng.integers(2, 9))
    people = rng.choice([0, 1, 2, 5, 10, 11, 12, 20, 60, 500], n)
    decisions = people * rng.integers(1, 6, n)
    events = rng.binomial(decisions, rng.choice([0.02, 0.4, 0.98]))
    return people, decisions, events, decisions - events


def test_p2_no_hidden_count_of_a_table_can_be_pinned_by_linear_programming():
    rng = np.random.default_rng(0)
    n_attacked = 0
    for _ in range(TABLES):
        columns = random_table(rng)
        hidden = hide_together(*columns)
        for column in columns:
            assert not is_small(column[~hidden]).any()
        if is_small([column.sum() for column in columns]).any():
            continue  # the totals themselves are hidden then
        for number, column in enumerate(columns[:2]):
            known = [None if unseen else int(c) for c, unseen in zip(column, hidden, strict=True)]
            # A hidden row is known to hold somebody, unless all are hidden, empty ones too.
            gaps = room(int(column.sum()), known, lowest=int(not hidden.all()))
            n_attacked += len(gaps)
            assert all(gap >= LEAST_ROOM for gap in gaps.values()), (number, columns)
        for column in columns[2:]:
            rest = int(column[hidden].sum())
            assert rest == 0 or (rest >= 11 and hidden.sum() >= 2)
    assert n_attacked > TABLES


def test_p2_no_step_of_a_flow_and_nobody_left_out_on_the_way_is_a_small_count():
    rng = np.random.default_rng(1)
    n_hidden = 0
    for _ in range(TABLES):
        losses = rng.choice([0, 1, 3, 9, 10, 11, 40, 300], int(rng.integers(1, 8)))
        counts = (np.cumsum(losses[::-1])[::-1] + rng.choice([0, 4, 11, 200])).tolist()
        hidden = hide_steps(counts)
        shown = [count for count, unseen in zip(counts, hidden, strict=True) if not unseen]
        n_hidden += int(hidden.sum())
        gaps = np.abs(np.subtract.outer(shown, shown)) if shown else np.zeros(1)
        assert not is_small(shown).any()
        assert not is_small(gaps).any()
    assert n_hidden > TABLES / 4


def test_hiding_by_hand():
    assert hide_together([5, 20, 30]).tolist() == [True, True, False]
    assert hide_together([0, 5, 20]).tolist() == [True, True, True]
    assert hide_together([0, 20, 30]).tolist() == [False, False, False]
    assert hide_together([10, 10, 11, 11]).tolist() == [True, True, True, False]
    assert hide_together([40, 50, 60], [3, 40, 50]).tolist() == [True, True, False]
    assert hide_together([40, 50, 60], [3, 4, 50]).tolist() == [True, True, True]  # 7 in two rows


def test_rows_hidden_for_another_reason_take_one_more_with_them():
    assert hide_together([40, 50, 60], also=[True, False, False]).tolist() == [True, True, False]
    assert hide_together([40, 50, 60], also=[False] * 3).tolist() == [False] * 3


@pytest.mark.parametrize(
    ("counts", "hidden"),
    [
        ([100, 95, 80], [False, True, False]),
        ([100, 100, 80], [False, False, False]),
        ([100, 89, 80], [False, True, False]),
        ([85, 80], [True, False]),
        ([100, 7], [False, True]),
        ([100, None, 50], [False, True, False]),
        ([], []),
    ],
)
def test_the_last_step_of_a_flow_is_shown_first(counts, hidden):
    assert hide_steps(counts).tolist() == hidden


def test_counts_shown_elsewhere_are_subtracted_too():
    assert hide_steps([100, 50], known=(95,)).tolist() == [True, False]
    assert shown_flow([100, 50], known=(95,)) == [None, 50]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((500, 300, 100), [500, 300, 100]),
        ((500, 495, 100), [500, None, 100]),
        ((500, 108, 100), [500, None, 100]),
        ((500, 100, 100), [500, 100, 100]),
        ((500, 100, 7), [500, 100, None]),
        ((105, 105, 100), [None, None, 100]),
        ((500, 111, 100), [500, 111, 100]),
        ((500, 20, 0), [500, 20, 0]),
    ],
)
def test_neither_a_small_count_nor_a_small_difference_of_a_flow_is_shown(counts, expected):
    assert shown_flow(counts) == expected


@given(st.lists(st.integers(0, 60), min_size=1, max_size=12))
def test_no_two_counts_of_a_flow_that_are_shown_tell_of_few(counts):
    told = [count for count in shown_flow(counts) if count is not None]
    assert not any(0 < count < 11 for count in told)
    assert not any(0 < abs(one - other) < 11 for one in told for other in told)


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8))
def test_no_hidden_count_is_pinned_by_the_total(counts):
    """An attacker knows the total and that no hidden cell is empty, not which ones were small."""
    hidden, numbers = hide_together(counts), np.array(counts)
    assert not is_small(numbers[~hidden]).any()
    if hidden.any() and not hidden.all():
        assert hidden.sum() >= 2
        assert numbers[hidden].sum() - hidden.sum() >= 10  # width of what any hidden cell may be


def test_a_count_by_itself_is_shown_unless_it_is_few():
    assert [shown_count(n) for n in (0, 1, 10, 11)] == [0, None, None, 11]
    assert [shown_count(size) for size in (0.0, 10.9, 11.0)] == [0.0, None, 11.0]
    assert (are_few(10), are_few(11), are_few(0)) == (True, False, False)
    assert FEW == "under 11"


def test_an_effective_size_is_few_if_it_is_printed_as_one():
    assert [rounds_to_few(size) for size in (10.4, 10.6, 11)] == [True, False, False]
    assert rounds_to_few(math.nan)


def test_counts_of_a_known_sum_are_shown_all_or_none():
    assert shown_parts(40, 11, 0) == (40, 11, 0)
    assert shown_parts(40, 10) == (None, None)
    assert any_few([40, 3])
    assert not any_few([40, 0])


def test_counts_of_the_same_people_are_shown_apart_the_first_ones_first():
    assert shown_apart((135, 136, 135, 700)) == [135, None, 135, 700]
    assert shown_apart((135, 141), known=(130,)) == [None, 141]
    assert shown_apart((7, 0, 11, 11)) == [None, 0, 11, 11]
    assert tells_few(73, (77, 500))
    assert not tells_few(77, (77, 500))


@given(st.lists(st.integers(0, 150), min_size=1, max_size=8), st.integers(0, 300))
def test_p2_no_two_counts_of_a_cohort_that_are_shown_differ_by_few(stages, rows):
    shown = shown_funnel(sorted(stages, reverse=True), rows, [max(rows - 4, 0), rows // 2])
    known = shown.counts
    assert not any(are_few(count) for count in known)
    assert not any(are_few(abs(one - other)) for one in known for other in known)
    assert shown == shown_funnel(sorted(stages, reverse=True), rows, [max(rows - 4, 0), rows // 2])


def test_a_part_is_counted_unless_it_or_the_rest_is_few():
    assert part_told(40, 1_200, "stays") == "40 of the 1,200 stays"
    assert part_told(3, 1_200, "stays") == "some of the stays"
    assert part_told(1_195, 1_200, "stays") == "some of the stays"
