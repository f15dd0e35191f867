"""Trees as arrays: a hand-worked one, what shrinking does, and what no file may hold."""

from dataclasses import replace

import numpy as np
import pytest

from etips.models.forest import BLOCK, EVERY, LEAVES, Forest, Tree, plant

STUMP = Tree([1], [0.5], [True], [0b01], [0b10], [-1.0, 2.0])
# x0 <= 0: leaf 0; otherwise x1 <= 3 (gaps go right): leaf 1, else leaf 2
DEEPER = Tree(
    [0, 1], [0.0, 3.0], [False, False], [0b001, 0b010], [0b110, 0b100], [1.0, 10.0, 100.0]
)
ROWS = np.array([[-1.0, 0.0], [1.0, 3.0], [1.0, 4.0], [np.nan, np.nan], [-1.0, np.nan]])


def forest(**more):
    trees, member, output = [STUMP, DEEPER, STUMP], [0, 0, 1], [0, EVERY, 1]
    return plant(trees, member, output, np.array([[0.0, 5.0], [7.0, 0.0]]))


def test_rows_reach_their_leaves_and_gaps_go_where_they_were_told():
    said = forest().outputs(ROWS)
    stump, deeper = np.array([-1.0, 2, 2, -1, -1]), np.array([1.0, 10, 100, 100, 1])
    np.testing.assert_array_equal(said[0, :, 0], stump + deeper)
    np.testing.assert_array_equal(said[0, :, 1], 5 + deeper)
    np.testing.assert_array_equal(said[1, :, 0], 7)
    np.testing.assert_array_equal(said[1, :, 1], stump)


def test_the_answer_for_a_row_does_not_depend_on_the_others():
    rows = np.random.default_rng(0).normal(size=(BLOCK + 7, 2))
    whole = forest().outputs(rows)
    np.testing.assert_array_equal(whole[:, -9:], forest().outputs(rows[-9:]))
    assert forest().outputs(rows[:0]).shape == (2, 0, 2)


def test_a_member_alone_says_what_it_said_among_others():
    both = forest().outputs(ROWS)
    np.testing.assert_array_equal(forest().select([1, 0]).outputs(ROWS), both[[1, 0]])
    assert forest().select([1]).n_trees == 1


def test_shrunken_trees_count_less_and_none_are_kept_of_nothing():
    half = forest().shrink(0.5, np.array([1.0, 2.0])).outputs(ROWS)
    beyond = forest().outputs(ROWS) - forest().base[:, None]
    np.testing.assert_allclose(half, np.array([1.0, 2.0]) + 0.5 * beyond)
    nothing = forest().shrink(0.0, np.array([1.0, 2.0]))
    assert (nothing.n_trees, nothing.n_members) == (0, 2)
    np.testing.assert_array_equal(nothing.outputs(ROWS)[0, 0], [1.0, 2.0])
    np.testing.assert_allclose(
        forest().scale(3.0, -1.0).outputs(ROWS), 3 * forest().outputs(ROWS) - 1
    )


def test_what_a_file_holds_is_the_same_forest():
    again = Forest.from_arrays(forest().arrays(), n_columns=2)
    np.testing.assert_array_equal(again.outputs(ROWS), forest().outputs(ROWS))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("member", np.array([0, 0, 2])),
        ("output", np.array([0, -2, 1])),
        ("output", np.array([0, 2, 1])),
        ("column", np.full((3, LEAVES - 1), 2)),
        ("column", np.full((3, LEAVES - 1), -1)),
        ("cut", np.full((3, LEAVES - 1), np.nan)),
        ("value", np.full((3, LEAVES), np.inf)),
        ("value", np.zeros((2, LEAVES))),
        ("left", np.zeros((3, LEAVES - 1), np.int64)),
        ("base", np.array([1.0, 2.0])),
        ("base", np.full((2, 2), np.nan)),
    ],
)
def test_a_forged_part_is_refused(name, value):
    with pytest.raises(ValueError, match="do not fit together"):
        Forest.from_arrays({**forest().arrays(), name: value}, n_columns=2)


def test_a_forest_with_other_parts_is_refused():
    arrays = forest().arrays()
    del arrays["left"]
    with pytest.raises(ValueError, match="other parts"):
        Forest.from_arrays(arrays, n_columns=2)
    with pytest.raises(ValueError, match="without columns"):
        Forest.from_arrays(
            replace(forest(), column=np.zeros((3, LEAVES - 1), np.int64)).arrays(), n_columns=0
        )
