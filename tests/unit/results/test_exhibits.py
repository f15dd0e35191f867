"""Exhibits refuse what does not fit together."""

from dataclasses import replace

import pytest

from etips.results.exhibits import Actions, DoseGrid, WeightHistogram, require_even

ACTIONS = Actions(("a", "b"), None, (20, 30), (0.4, 0.6), (1.0, 0.0), (0.7, 0.3), None, (9.0, 9.0))


@pytest.mark.parametrize(
    "change",
    [
        {"names": ("a",)},
        {"n_logged": (20,)},
        {"supported_share": (1.0,)},
        {"grid": DoseGrid(2, 2, "fluid", "vasopressor")},
    ],
)
def test_actions_have_one_entry_each_in_every_column(change):
    with pytest.raises(ValueError, match="columns of equal length"):
        replace(ACTIONS, **change)
    replace(ACTIONS, grid=DoseGrid(1, 2, "fluid", "vasopressor"))


def test_a_grid_without_cells_is_refused():
    with pytest.raises(ValueError, match="rows and columns"):
        DoseGrid(0, 5, "fluid", "vasopressor")


def test_weights_have_a_share_for_every_bin():
    with pytest.raises(ValueError, match="equal length"):
        WeightHistogram(edges=(0.0, 1.0), decisions=(1.0,), weight=(1.0, 0.0))
    require_even((1, 2), ("a", "b"))
