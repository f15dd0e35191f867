"""Trees of any depth as arrays: forests and boosted trees that scikit-learn has fitted.

Rows are compared in float32, as learners read them; each cut is rounded down to the largest float32
below it, which decides every float32 value as the cut itself does. A child always comes after its
parent, so that no file can send a reader in circles. NumPy alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etips.data.decisions import Floats, Ints
from etips.models.row_model import Reads

EVERY = -1
"""Output of a tree that adds to all of them."""

LEAF = -1
"""Column of a node that asks for none."""

ABSENT = -30.0
"""Logit of an action that a classifier never saw."""

_ROWS = 2048  # at once, so that their columns stay near the processor
_CELLS = 65_536  # rows times trees that descend together

_DTYPES = {
    "base": np.float64,
    "start": np.int64,
    "column": np.int32,
    "cut": np.float32,
    "left": np.int32,
    "right": np.int32,
    "missing_left": np.uint8,
    "value": np.float32,
    "output": np.int64,
}


@dataclass(frozen=True, eq=False)
class TreeEnsemble:
    """One member that says K numbers of a row: a base, and what each of T trees adds to it.

    Args:
        reads: What rows are made of.
        base: Shape (K,).
        start: First node of each tree, and the number of all nodes, shape (T + 1,).
        column: Column of the row that each node asks for, `LEAF` at leaves, shape (nodes,).
        cut: A row goes left where its value is at most this.
        left: Left child of each node, counted within its tree; 0 at leaves.
        right: Right child, likewise.
        missing_left: Whether rows without a value go left.
        value: What each leaf adds, shape (nodes, K) where trees add to every output, (nodes, 1)
            otherwise; shares of an average are in it.
        output: Which output each tree adds to, or `EVERY`, shape (T,).
    """

    reads: Reads
    base: Floats
    start: Ints
    column: NDArray[np.int32]
    cut: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    value: NDArray[np.float32]
    output: Ints

    @property
    def n_members(self) -> int:
        """Members that answer: the trees add up to one."""
        return 1

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.output)

    @property
    def shape(self) -> dict[str, object]:
        """What a manifest says of it."""
        return {"ensemble": self.reads, "n_trees": self.n_trees}

    def outputs(self, rows: NDArray[Any]) -> Floats:
        """What it says of rows (n, d), NaN where missing; shape (1, n, K)."""
        said = np.repeat(self.base[None], len(rows), axis=0)
        for first in range(0, len(rows), _ROWS):
            block = np.asarray(rows[first : first + _ROWS], np.float32)
            # Every column twice: where missing values go left, and (NaN is at most nothing) right.
            values = np.stack([np.where(np.isnan(block), -np.inf, block), block], axis=2)
            trees_at_once = max(1, _CELLS // len(block))
            for tree in range(0, self.n_trees, trees_at_once):
                trees = slice(tree, min(tree + trees_at_once, self.n_trees))
                said[first : first + _ROWS] += self._sum(trees, values)
        return said[None]

    def _sum(self, trees: slice, values: NDArray[np.float32]) -> Floats:
        """What some trees add for some rows, shape (n, K)."""
        n, (place, child) = len(values), self._descent
        flat, row = values.ravel(), np.repeat(np.arange(n), trees.stop - trees.start)
        row *= values[0].size
        node = np.tile(self.start[trees], n)
        moving = np.flatnonzero(place[node] >= 0)
        while moving.size:
            here = node[moving]
            goes_right = ~(flat[row[moving] + place[here]] <= self.cut[here])
            here = child[2 * here + goes_right]
            node[moving] = here
            moving = moving[place[here] >= 0]
        if self.value.shape[1] > 1:
            by_tree = self.value[node].reshape(n, -1, self.base.size)
            return np.asarray(by_tree.sum(axis=1, dtype=np.float64))
        adds_to = np.eye(self.base.size)[self.output[trees]]
        return np.asarray(self.value[node, 0].reshape(n, -1) @ adds_to)

    @cached_property
    def _descent(self) -> tuple[Ints, Ints]:
        """Where each node looks in a doubled row, negative at leaves; its children side by side."""
        place = 2 * self.column.astype(np.int64) + (self.missing_left == 0)
        place[self.column == LEAF] = LEAF
        first = np.repeat(self.start[:-1], np.diff(self.start))
        child = np.stack([self.left, self.right], axis=1) + first[:, None]
        return place, child.ravel()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What a file holds."""
        return {n: np.ascontiguousarray(getattr(self, n), kind) for n, kind in _DTYPES.items()}

    @classmethod
    def from_arrays(
        cls,
        arrays: Mapping[str, NDArray[Any]],
        *,
        reads: object,
        n_columns: int,
        n_outputs: int,
    ) -> Self:
        """What a file held; a ValueError unless every part fits the others.

        Args:
            arrays: By name.
            reads: What rows are made of.
            n_columns: Columns of those rows.
            n_outputs: K.
        """
        if set(arrays) != set(_DTYPES) or reads not in get_args(Reads):
            raise ValueError("an ensemble of trees has other parts")
        if any(arrays[name].dtype != kind for name, kind in _DTYPES.items()):
            raise ValueError("an ensemble of trees has other parts")
        made = cls(reads=cast(Reads, reads), **arrays)
        if not made._is_sound(n_columns, n_outputs):
            raise ValueError("the parts of an ensemble of trees do not fit together")
        return made

    def _is_sound(self, n_columns: int, n_outputs: int) -> bool:
        n_nodes, n_trees = self.column.size, self.output.size
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(_DTYPES, (n_nodes,))
        width = self.value.shape[-1] if self.value.ndim == 2 else 0
        shapes |= {"base": (n_outputs,), "start": (n_trees + 1,), "output": (n_trees,)}
        shapes["value"] = (n_nodes, width)
        if any(getattr(self, name).shape != shape for name, shape in shapes.items()):
            return False
        size = np.diff(self.start)  # of starts within the nodes: far ones would wrap around
        within = (self.start >= 0) & (self.start <= n_nodes)
        if not within.all() or size.sum() != n_nodes or (size < 1).any():
            return False
        every = bool((self.output == EVERY).all()) and width == n_outputs
        own = bool(((self.output >= 0) & (self.output < n_outputs)).all()) and width == 1
        finite = np.isfinite(self.base).all() and np.isfinite(self.value).all()
        if not (every or own) or not finite or np.isnan(self.cut).any():
            return False
        leaf, place = self.column == LEAF, np.arange(n_nodes) - np.repeat(self.start[:-1], size)
        asks = (self.column >= 0) & (self.column < n_columns)
        for child in (self.left, self.right):  # later than its parent, in the same tree
            asks &= (child > place) & (child < np.repeat(size, size))
        return bool((leaf | asks).all())

    @classmethod
    def of_forests(
        cls, models: Sequence[Any], *, reads: Reads, columns: ArrayLike, n_outputs: int = 0
    ) -> Self:
        """Of fitted random forests or extremely randomised trees of scikit-learn.

        Args:
            models: One for all outputs (a classifier gives the chance of each class), or one each.
            reads: What rows are made of.
            columns: Places in those rows of the columns that the models were fitted on.
            n_outputs: K, where a classifier may not have seen every action.
        """
        trees, output = [], []
        for number, model in enumerate(models):
            for estimator in model.estimators_:
                own = estimator.tree_
                trees.append(
                    _Nodes(
                        column=np.where(own.children_left < 0, LEAF, own.feature),
                        cut=own.threshold,
                        left=own.children_left,
                        right=own.children_right,
                        missing_left=own.missing_go_to_left,
                        value=own.value.reshape(own.node_count, -1) / len(model.estimators_),
                    )
                )
            output += [EVERY if len(models) == 1 else number] * len(model.estimators_)
        if len(models) > 1:
            return cls._plant(trees, output, np.zeros(len(models)), reads, columns)
        classes = getattr(models[0], "classes_", np.arange(trees[0].value.shape[1]))
        base = np.zeros(max(n_outputs, int(classes.max()) + 1))
        to_output = np.eye(base.size)[classes]
        trees = [tree._replace(value=tree.value @ to_output) for tree in trees]
        return cls._plant(trees, output, base, reads, columns)

    @classmethod
    def of_boosting(
        cls, models: Sequence[Any], *, reads: Reads, columns: ArrayLike, n_outputs: int = 0
    ) -> Self:
        """Of fitted histogram gradient boosting of scikit-learn, before the link of its loss.

        Args:
            models: A classifier of all actions, which gives logits, or one model each output: a
                regressor, or a classifier of two classes, which gives the logit of the second.
            reads: What rows are made of.
            columns: Places in those rows of the columns that the models were fitted on.
            n_outputs: K, where a classifier may not have seen every action.
        """
        starts = [np.ravel(model._baseline_prediction) for model in models]
        base, places = np.concatenate(starts), [np.array([place]) for place in range(len(models))]
        if len(models) == 1:
            classes = getattr(models[0], "classes_", np.zeros(1, int))
            places = [classes[-starts[0].size :]]  # of two classes the second alone has trees
            base = np.full(max(n_outputs, int(classes.max()) + 1), ABSENT)
            base[classes] = 0.0
            base[places[0]] = starts[0]
        trees, output = [], []
        for model, own in zip(models, places, strict=True):
            for step in model._predictors:
                for place, predictor in zip(own.tolist(), step, strict=True):
                    nodes = predictor.nodes
                    if nodes["is_categorical"].any():
                        raise ValueError("trees that split on categories cannot be kept")
                    trees.append(
                        _Nodes(
                            column=np.where(nodes["is_leaf"] > 0, LEAF, nodes["feature_idx"]),
                            cut=nodes["num_threshold"],
                            left=nodes["left"],
                            right=nodes["right"],
                            missing_left=nodes["missing_go_to_left"],
                            value=nodes["value"][:, None],
                        )
                    )
                    output.append(place)
        return cls._plant(trees, output, base, reads, columns)

    @classmethod
    def _plant(
        cls,
        trees: "Sequence[_Nodes]",
        output: Sequence[int],
        base: Floats,
        reads: Reads,
        columns: ArrayLike,
    ) -> Self:
        """Trees of a model's own columns, side by side, as trees of the whole rows."""
        size = [len(tree.column) for tree in trees]
        whole = {
            name: np.concatenate([getattr(tree, name) for tree in trees]) for name in _Nodes._fields
        }
        leaf = whole["column"] == LEAF
        arrays = {
            "base": base,
            "start": np.concatenate([[0], np.cumsum(size)]),
            "column": np.where(leaf, LEAF, np.asarray(columns)[whole["column"]]),
            "cut": round_down(np.where(leaf, 0.0, whole["cut"])),
            "left": np.where(leaf, 0, whole["left"]),
            "right": np.where(leaf, 0, whole["right"]),
            "missing_left": whole["missing_left"],
            "value": whole["value"],
            "output": output,
        }
        return cls(reads, **{n: np.asarray(a, _DTYPES[n]) for n, a in arrays.items()})


class _Nodes(NamedTuple):
    """One tree as scikit-learn holds it, by node."""

    column: NDArray[Any]
    cut: NDArray[Any]
    left: NDArray[Any]
    right: NDArray[Any]
    missing_left: NDArray[Any]
    value: NDArray[Any]


def round_down(cut: Floats) -> NDArray[np.float32]:
    """The largest float32 values that are not above some numbers."""
    with np.errstate(over="ignore"):  # beyond float32 is infinite, and stepped back from
        near = cut.astype(np.float32)
        return np.where(near > cut, np.nextafter(near, np.float32(-np.inf)), near)
