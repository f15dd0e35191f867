"""Boosted trees as arrays: what a policy keeps of them, and how they are asked.

A tree has at most eight leaves. It is asked without walking: each of its nodes strikes out the
leaves on the side that a row does not take, and the one that is left is the row's. Nothing here
points anywhere, so that no file can send a reader astray. NumPy alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import Bools, Floats, Ints

LEAVES = 8
"""Most leaves of a tree: one bit each."""

EVERY = -1
"""Output of a tree that is added to all of them."""

BLOCK = 16_384
"""Rows that are asked at once, so that a column of them stays near the processor."""

_EMPTY = -np.inf  # a cut that no node has: the place holds none
_FIRST = np.array([0, *((k & -k).bit_length() - 1 for k in range(1, 256))])  # lowest bit of a byte

_DTYPES = {
    "base": np.float64,
    "member": np.int64,
    "output": np.int64,
    "column": np.int64,
    "cut": np.float64,
    "missing_left": np.uint8,
    "left": np.uint8,
    "right": np.uint8,
    "value": np.float64,
}


@dataclass(frozen=True, eq=False)
class Forest:
    """J members, each the sum of its trees beside a base; T trees in all.

    Args:
        base: What each member says of anybody before its trees speak, shape (J, K).
        member: Whose each tree is, shape (T,).
        output: Which of the K outputs it is added to, or `EVERY`, shape (T,).
        column: Feature that each node asks for, shape (T, LEAVES - 1).
        cut: Rows above it go right; places without a node have minus infinity.
        missing_left: Whether rows without a value go left.
        left: Leaves below the left child of each node, a bit each.
        right: Those below the right child.
        value: Of each leaf, shape (T, LEAVES).
    """

    base: Floats
    member: Ints
    output: Ints
    column: Ints
    cut: Floats
    missing_left: NDArray[np.uint8]
    left: NDArray[np.uint8]
    right: NDArray[np.uint8]
    value: Floats

    @property
    def n_members(self) -> int:
        """Members that answer."""
        return len(self.base)

    @property
    def n_trees(self) -> int:
        """Trees of all members."""
        return len(self.member)

    def outputs(self, rows: NDArray[Any]) -> Floats:
        """What every member says of rows (n, d), NaN where missing; shape (J, n, K)."""
        said = np.empty((len(rows), *self.base.shape))
        for start in range(0, len(rows), BLOCK):
            said[start : start + BLOCK] = np.moveaxis(
                self._block(rows[start : start + BLOCK]), 2, 0
            )
        return np.moveaxis(said, 0, 1)

    def select(self, members: Sequence[int]) -> Self:
        """Some of the members, in the order given."""
        parts = [np.flatnonzero(self.member == number) for number in members]
        trees = np.concatenate([np.zeros(0, np.int64), *parts])
        own = {name: getattr(self, name)[trees] for name in _DTYPES if name != "base"}
        own["member"] = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        return replace(self, base=self.base[list(members)], **own)

    def shrink(self, share: float, base: Floats) -> Self:
        """Members whose trees count so much, beside another base, shape (K,) or (J, K)."""
        based = np.broadcast_to(base, self.base.shape).copy()
        if share == 0:
            return replace(self.select([]), base=based)
        return replace(self, base=based, value=self.value * share)

    def scale(self, unit: float, centre: float) -> Self:
        """Members whose outputs are `centre + unit * output`."""
        return replace(self, base=centre + unit * self.base, value=unit * self.value)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file holds."""
        each = {own.name: getattr(self, own.name) for own in fields(self)}
        return {name: np.ascontiguousarray(each[name], kind) for name, kind in _DTYPES.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, n_columns: int) -> Self:
        """What a file held; a ValueError unless every part fits the others.

        Args:
            arrays: By name.
            n_columns: Features that there are to ask for.
        """
        if set(arrays) != set(_DTYPES):
            raise ValueError("a forest has other parts")
        made = cls(**{name: np.asarray(arrays[name]) for name in _DTYPES})
        n_trees, nodes = made.member.size, (made.member.size, LEAVES - 1)
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_DTYPES, nodes)
        shapes |= {"base": made.base.shape, "member": (n_trees,), "output": (n_trees,)}
        shapes["value"] = (n_trees, LEAVES)
        sound = made.base.ndim == 2 and made.base.size > 0
        for name, kind in _DTYPES.items():
            own = getattr(made, name)
            sound = sound and own.dtype == kind and own.shape == shapes[name]
        sound = sound and all(
            bool(((own >= low) & (own < high)).all())
            for own, low, high in (
                (made.member, 0, made.base.shape[0]),
                (made.output, EVERY, made.base.shape[1]),
                (made.column, 0, max(n_columns, 1)),
            )
        )
        finite = np.isfinite(made.base).all() and np.isfinite(made.value).all()
        if not (sound and finite) or np.isnan(made.cut).any():
            raise ValueError("the parts of a forest do not fit together")
        if n_trees and not n_columns:
            raise ValueError("a forest without columns has no trees")
        return made

    def _block(self, rows: NDArray[Any]) -> Floats:
        """Outputs of some rows, shape (J, K, n)."""
        columns = np.ascontiguousarray(rows.T, np.float64)
        missing: list[Bools | None] = [m if m.any() else None for m in np.isnan(columns)]
        said = np.repeat(self.base[:, :, None], len(rows), axis=2)
        for tree in range(self.n_trees):
            alive = self._leaves(tree, columns, missing)
            values = self.value[tree][_FIRST][alive]
            output = self.output[tree]
            if output == EVERY:
                said[self.member[tree]] += values
            else:
                said[self.member[tree], output] += values
        return said

    def _leaves(
        self, tree: int, columns: Floats, missing: Sequence[Bools | None]
    ) -> NDArray[np.uint8]:
        """The leaves that a tree has left for each row, a bit each; shape (n,)."""
        alive = np.full(columns.shape[1], 255, np.uint8)
        for node in np.flatnonzero((self.left[tree] | self.right[tree]) > 0):
            column = self.column[tree, node]
            goes_left = columns[column] <= self.cut[tree, node]
            gaps = missing[column]
            if gaps is not None and self.missing_left[tree, node]:
                goes_left |= gaps
            # Struck out: what lies on the other side.
            alive &= np.where(goes_left, ~self.right[tree, node], ~self.left[tree, node])
        return alive


@dataclass(frozen=True, eq=False)
class Tree:
    """One tree before it joins a forest: its nodes and leaves, as far as it has them.

    Args:
        column: Of each node.
        cut: Of each node.
        missing_left: Of each node.
        left: Leaves below each node's left child, a bit each.
        right: And below its right child.
        value: Of each leaf.
    """

    column: Sequence[int]
    cut: Sequence[float]
    missing_left: Sequence[bool]
    left: Sequence[int]
    right: Sequence[int]
    value: Sequence[float]


def plant(
    trees: Sequence[Tree], member: Sequence[int], output: Sequence[int], base: Floats
) -> Forest:
    """A forest of trees, each of its member and its output.

    Args:
        trees: In the order in which they are added up.
        member: Of each.
        output: Of each, or `EVERY`.
        base: Shape (J, K).
    """
    n = len(trees)
    table = {
        name: np.zeros((n, LEAVES if name == "value" else LEAVES - 1), _DTYPES[name])
        for name in ("column", "cut", "missing_left", "left", "right", "value")
    }
    table["cut"][:] = _EMPTY
    for number, tree in enumerate(trees):
        for name, whole in table.items():
            own = getattr(tree, name)
            whole[number, : len(own)] = own
    return Forest(
        base=np.asarray(base, np.float64),
        member=np.asarray(member, np.int64).reshape(n),
        output=np.asarray(output, np.int64).reshape(n),
        **table,
    )
