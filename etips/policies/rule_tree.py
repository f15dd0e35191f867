"""A tree of questions as a policy: what a guideline could say, asked of the last visible row."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import Floats, Ints
from etips.data.schema import MISSING_SUFFIX, Schema

MOST_LEVELS = 4
"""Questions on the way to an action, at most: more than that nobody remembers."""

NONE = -1
"""Stands for no question at a leaf, and for no action above one."""

_DIGITS = 15  # all that a number has


@dataclass(frozen=True, eq=False)
class RuleTree:
    """Questions in the order of a heap: those after question i are 2 i + 1 (yes) and 2 i + 2.

    A question asks whether a feature of the row is at most `cut`. A place that no row reaches has
    neither a question nor an action.

    Args:
        column: Feature that each asks for, `NONE` where it asks nothing, shape (places,).
        cut: Rows at or below it go on to 2 i + 1.
        missing_low: Whether rows without a value do.
        action: At a leaf, `NONE` elsewhere.
    """

    column: Ints
    cut: Floats
    missing_low: NDArray[np.bool_]
    action: Ints

    @classmethod
    def always(cls, action: int) -> Self:
        """The tree that asks nothing."""
        single = np.array([NONE]), np.zeros(1), np.zeros(1, bool), np.array([action])
        return cls(*single)

    @property
    def n_places(self) -> int:
        """Places of the heap."""
        return len(self.column)

    @property
    def depth(self) -> int:
        """Questions on the longest way."""
        asked = np.flatnonzero(self.column != NONE)
        return 0 if not asked.size else int(asked.max() + 1).bit_length()

    @property
    def leaves(self) -> tuple[int, ...]:
        """Places that hold an action, from the side of yes to that of no."""
        found: list[int] = []

        def walk(place: int) -> None:
            if self.column[place] == NONE:
                found.append(place)
            else:
                walk(2 * place + 1)
                walk(2 * place + 2)

        walk(0)
        return tuple(found)

    def leaf_of(self, rows: NDArray[Any]) -> Ints:
        """Leaf of each row (n, d), NaN where missing; shape (n,)."""
        place = np.zeros(len(rows), np.int64)
        for _ in range(self.depth):
            column = self.column[place]
            asks = np.flatnonzero(column != NONE)
            at = place[asks]
            values = rows[asks, column[asks]].astype(np.float64)
            low = np.where(np.isnan(values), self.missing_low[at], values <= self.cut[at])
            place[asks] = 2 * at + np.where(low, 1, 2)
        return place

    def actions(self, rows: NDArray[Any]) -> Ints:
        """Action of each row, shape (n,)."""
        return self.action[self.leaf_of(rows)]

    def conditions(self, leaf: int, schema: Schema) -> list[str]:
        """What must hold on the way to a leaf, in words, one a column."""
        names = (*schema.sequence, *schema.static)
        limits: dict[int, tuple[float, float, bool]] = {}
        place = leaf
        while place:
            place, side = (place - 1) // 2, place % 2
            column, cut = int(self.column[place]), float(self.cut[place])
            low, high, unknown = limits.get(column, (-math.inf, math.inf, True))
            unknown &= bool(self.missing_low[place]) == (side == 1)
            if side == 1:
                high = min(high, cut)
            else:
                low = max(low, cut)
            limits[column] = low, high, unknown
        return [in_words(names[c], schema, *own) for c, own in reversed(limits.items())]

    def rules(self, schema: Schema) -> list[str]:
        """One sentence a leaf, in the order of `leaves`."""
        sentences = []
        for leaf in self.leaves:
            told = " and ".join(self.conditions(leaf, schema))
            action = schema.action_name(int(self.action[leaf]))
            sentences.append(f"If {told}: {action}." if told else f"Always: {action}.")
        return sentences

    def to_json(self) -> dict[str, object]:
        """JSON-ready."""
        return {
            "column": self.column.tolist(),
            "cut": self.cut.tolist(),
            "missing_low": self.missing_low.tolist(),
            "action": self.action.tolist(),
        }

    @classmethod
    def from_json(cls, document: object, *, n_columns: int, n_actions: int) -> Self:
        """What `to_json` gave; a ValueError, TypeError or KeyError unless every part fits.

        Args:
            document: As read.
            n_columns: Features that there are to ask for.
            n_actions: K.
        """
        told: Any = document
        parts = [told[name] for name in ("column", "cut", "missing_low", "action")]
        places = len(parts[0])
        if not all(isinstance(part, list) and len(part) == places for part in parts):
            raise ValueError("the parts of a tree do not fit together")
        if places not in [2 ** (levels + 1) - 1 for levels in range(MOST_LEVELS + 1)]:
            raise ValueError("a tree has other places")
        kinds = ((int,), (int, float), (bool,), (int,))
        for part, kind in zip(parts, kinds, strict=True):
            if not all(type(value) in kind for value in part):
                raise TypeError("a tree holds numbers")
        column, action = np.array(parts[0], np.int64), np.array(parts[3], np.int64)
        made = cls(column, np.array(parts[1], np.float64), np.array(parts[2], bool), action)
        inner = places // 2
        sound = ((column >= NONE) & (column < n_columns)).all() and (column[inner:] == NONE).all()
        if not sound or not np.isfinite(made.cut).all():
            raise ValueError("a tree asks for what is not there")
        if not all(0 <= action[leaf] < n_actions for leaf in made.leaves):
            raise ValueError("a leaf of a tree has no action")
        return made


def in_words(name: str, schema: Schema, low: float, high: float, unknown: bool) -> str:
    """That a feature is above `low` and at most `high`, or not known if `unknown`."""
    for source, levels in schema.categories.items():
        for level in levels:
            if name == f"{source}={level}":
                return f"{source} is {level}" if low >= 0 else f"{source} is not {level}"
    bare = name.removesuffix(MISSING_SUFFIX)
    if bare != name and bare in schema.indicators:
        return f"{bare} was not measured" if low >= 0 else f"{bare} was measured"
    words = _two_words(name, schema)
    if words and -math.inf < max(low, -high) < math.inf:
        text = f"{name} is {words[1] if low >= 0 else words[0]}"
    elif math.isinf(low):
        text = f"{name} ≤ {high:.{_DIGITS}g}"
    elif math.isinf(high):
        text = f"{name} > {low:.{_DIGITS}g}"
    else:
        text = f"{low:.{_DIGITS}g} < {name} ≤ {high:.{_DIGITS}g}"
    return f"{text} (or is not known)" if unknown and schema.may_be_missing(name) else text


def _two_words(name: str, schema: Schema) -> tuple[str, ...]:
    """What a table calls no and yes in a column; nothing where it holds something else."""
    own = None if schema.recipe is None else schema.recipe.kinds.get(name)
    return own.levels if own is not None and own.kind == "yes_no" else ()
