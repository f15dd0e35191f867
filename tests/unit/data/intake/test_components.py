"""What actions are made of."""

from etips.data.intake.components import Component, find_components
from etips.data.intake.dose_classes import DoseClasses
from etips.data.intake.recipe import ActionReading, Recipe


def test_two_doses_are_two_components_the_first_the_slow_one():
    fluid = DoseClasses("fluid_ml", (), (0.0, 400.0), unit="ml")
    vaso = DoseClasses("vaso", (0.1,), (0.0, None, 0.2))
    first, second = find_components(Recipe(doses=(fluid, vaso)))
    assert first == Component(
        "fluid", ("none", "some"), (0, 0, 0, 1, 1, 1), ("none", "some (median 400 ml)")
    )
    assert second.of_action == (0, 1, 2, 0, 1, 2)
    assert second.levels == ("none", "up to 0.1", "over 0.1")


def test_combined_columns_are_a_component_each_though_not_all_pairs_occur():
    reading = ActionReading(("asp", "hep"), (("N", "N"), ("Y", "M"), ("Y", "N")))
    asp, hep = find_components(Recipe(action=reading))
    assert (asp.name, asp.levels, asp.of_action) == ("asp", ("N", "Y"), (0, 1, 1))
    assert (hep.name, hep.levels, hep.of_action) == ("hep", ("N", "M"), (0, 1, 0))


def test_a_plain_action_has_none():
    assert find_components(None) == ()
    assert find_components(Recipe()) == ()
    assert find_components(Recipe(action=ActionReading(("drug",), (("a",), ("b",))))) == ()
