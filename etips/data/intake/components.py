"""What actions are made of, where they combine doses or columns of a treatment."""

from dataclasses import dataclass
from itertools import product

from etips.data.intake.recipe import Recipe


@dataclass(frozen=True)
class Component:
    """One dose, or one column, of actions that combine several.

    Args:
        name: Of the dose or column.
        levels: What it can be, classes of a dose from none upwards.
        of_action: Which of the levels each action has.
        descriptions: The levels at length: a class of doses with its median and unit.
    """

    name: str
    levels: tuple[str, ...]
    of_action: tuple[int, ...]
    descriptions: tuple[str, ...] = ()


def find_components(recipe: Recipe | None) -> tuple[Component, ...]:
    """Doses or columns that make up an action, the slowest index first; none for a plain one."""
    if recipe is None:
        return ()
    if recipe.doses:
        numbers = product(*(range(dose.n_classes) for dose in recipe.doses))
        classes = zip(*numbers, strict=True)
        return tuple(
            Component(dose.name, dose.labels, own, dose.descriptions)
            for dose, own in zip(recipe.doses, classes, strict=True)
        )
    if recipe.action is None or len(recipe.action.columns) < 2:
        return ()
    columns = zip(*recipe.action.labels, strict=True)
    return tuple(
        _of_column(name, labels)
        for name, labels in zip(recipe.action.columns, columns, strict=True)
    )


def _of_column(name: str, labels: tuple[str, ...]) -> Component:
    """A component from the label that each action has in one column, in the order of actions."""
    levels = tuple(dict.fromkeys(labels))
    return Component(name, levels, tuple(levels.index(label) for label in labels), levels)
