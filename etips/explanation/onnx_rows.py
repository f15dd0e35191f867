"""Rows and what reads them as ONNX operations: summaries of the history, trees, models of rows.

Rows are float32 there, and so are cuts of trees: each is rounded down, so that a float32 value is
at most the rounded cut exactly where it is at most the cut.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.data.history_rows import LOG_SHIFT, have_gaps, is_wide, kept_features
from etips.data.schema import MISSING_SUFFIX, Schema
from etips.explanation.onnx_graph import Graph, ints
from etips.models.row_model import LIMIT, RowModel
from etips.models.tree_ensemble import LEAF, TreeEnsemble
from etips.policies.rule_tree import NONE, RuleTree

_STATES = ("newest", "total", "count", "earlier", "age", "lowest", "highest", "first")


def add_summary(graph: Graph, schema: Schema, static: str | None, *, extremes: bool) -> str:
    """The columns of `summarise_history` after every step of "steps", shape (N, T, columns).

    Args:
        graph: Written to.
        schema: Of the policy.
        static: Static features at every step, shape (N, T, s), where there are some.
        extremes: Whether the lowest, the highest and the first value so far follow.
    """
    kept, wide = kept_features(schema), is_wide(schema)
    features = _read(graph, schema, kept)
    newest, total, count, earlier, age, *extreme = _walk(graph, features, len(kept))
    parts = [newest, graph.add("Div", total, count)]  # nothing by nothing is NaN
    gaps = np.flatnonzero(have_gaps(schema, kept))
    if not wide:
        parts.append(graph.add("Sub", newest, earlier))
        if gaps.size:
            parts.append(graph.add("Gather", age, gaps, axis=-1))
    first = graph.add("Gather", "steps", ints(0), axis=-1)
    one = np.float32(1)
    ones = graph.add("Where", graph.add("IsNaN", first), one, one)
    parts.append(graph.add("CumSum", ones, np.int64(1)))
    parts += [] if static is None else [static]
    if extremes and not wide:
        parts += extreme
    return graph.add("Concat", *parts, axis=-1)


def _read(graph: Graph, schema: Schema, kept: list[int]) -> str:
    """The features, NaN where missing, as logarithms where learners take them, (N, T, d)."""
    names = [schema.sequence[place] for place in kept]
    source = {name: place for place, name in enumerate(schema.sequence)}
    features = graph.add("Gather", "steps", ints(*kept), axis=-1)
    nothing = np.float32(np.nan)
    marked = np.array([name + MISSING_SUFFIX in source for name in names])
    if marked.any():
        # A feature without a mark is looked for in itself, and does not count.
        places = [source.get(name + MISSING_SUFFIX, source[name]) for name in names]
        marks = graph.add("Gather", "steps", ints(*places), axis=-1)
        missing = graph.add("And", graph.add("Equal", marks, np.float32(1)), marked)
        features = graph.add("Where", missing, nothing, features)
    logs = np.array([name in schema.logarithms for name in names])
    if logs.any():
        shifted = graph.add("Add", features, np.float32(LOG_SHIFT))
        sound = graph.add("Greater", shifted, np.float32(0))
        log = graph.add("Log", graph.add("Where", sound, shifted, nothing))
        features = graph.add("Where", logs, log, features)
    return features


def _walk(graph: Graph, features: str, width: int) -> list[str]:
    """What is known of the history after each step, shape (N, T, d) each; see `_STATES`."""
    helper, kind = graph.onnx.helper, graph.onnx.TensorProto.FLOAT
    body = Graph("step_")
    zero, now, was = np.float32(0), "step_now", {name: f"step_{name}" for name in _STATES}
    gap = body.add("IsNaN", now)
    alone = body.add("Where", body.add("IsNaN", was["newest"]), now, was["newest"])
    states = [
        body.add("Where", gap, was["newest"], now),
        body.add("Add", was["total"], body.add("Where", gap, zero, now)),
        body.add("Add", was["count"], body.cast(body.add("Not", gap), "FLOAT")),
        body.add("Where", gap, was["earlier"], alone),
        body.add("Where", gap, body.add("Add", was["age"], np.float32(1)), zero),
    ]
    for name, way in (("lowest", "LessOrEqual"), ("highest", "GreaterOrEqual")):
        kept = body.add("Or", gap, body.add(way, was[name], now))  # never of NaN
        states.append(body.add("Where", kept, was[name], now))
    states.append(body.add("Where", body.add("IsNaN", was["first"]), now, was["first"]))
    told = [body.add("Identity", state) for state in states]
    taken, given = (
        [helper.make_tensor_value_info(name, kind, ["N", width]) for name in names]
        for names in ((*was.values(), now), (*states, *told))
    )
    step = helper.make_graph(body.nodes, "step", taken, given, body.constants)
    stays = graph.add("Slice", graph.add("Shape", features), ints(0), ints(1))
    shape = graph.add("Concat", stays, ints(width), axis=0)
    start = [graph.add("Expand", np.float32(own), shape) for own in (np.nan, 0, 0, *[np.nan] * 5)]
    said = graph.add_many(
        "Scan",
        *start,
        features,
        n_outputs=2 * len(_STATES),
        body=step,
        num_scan_inputs=1,
        scan_input_axes=[1],
        scan_output_axes=[1] * len(_STATES),
    )
    return said[len(_STATES) :]


def add_row_model(graph: Graph, model: RowModel, rows: str) -> list[str]:
    """What each member of a model of rows says, shape (n, K), in float64 as `RowModel` does."""
    add = graph.add
    rows = add("Div", add("Sub", graph.cast(rows, "DOUBLE"), model.mean), model.scale)
    held = add("Clip", rows, np.float64(-LIMIT), np.float64(LIMIT))
    lifted = add("Where", add("IsNaN", rows), np.float64(0), held)
    if model.form != "linear":
        lifted = add("MatMul", lifted, model.basis.T)
    if model.form == "waves":
        size = np.float64(np.sqrt(2 / max(len(model.phase), 1)))
        lifted = add("Mul", size, add("Cos", add("Add", lifted, model.phase)))
    elif model.form == "nearest":
        near = add("Sub", (model.basis**2).sum(axis=1), add("Mul", lifted, np.float64(2)))
        lifted = add("ArgMin", near, axis=-1, keepdims=0)
    said = []
    for weight, base in zip(model.weight, model.base, strict=True):
        nearest = model.form == "nearest"
        own = add("Gather", weight, lifted) if nearest else add("MatMul", lifted, weight)
        said.append(graph.cast(add("Add", own, base), "FLOAT"))
    return said


Leaf = list[tuple[int, float]]
"""Outputs of a leaf and what it adds to each."""

Branch = tuple[int, float, bool, "Branch | Leaf", "Branch | Leaf"]
"""A column, a cut, whether missing values are at most the cut, and what follows yes and no."""


_NODES = (
    *("nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_modes", "nodes_values"),
    *("nodes_truenodeids", "nodes_falsenodeids", "nodes_missing_value_tracks_true"),
)
_LEAVES = ("target_treeids", "target_nodeids", "target_ids", "target_weights")


class _Trees:
    """Nodes and leaves of trees as rows of what ONNX lists."""

    def __init__(self) -> None:
        self.nodes: list[tuple[int | float | str, ...]] = []
        self.leaves: list[tuple[int | float, ...]] = []

    def plant(self, tree: int, root: Branch | Leaf) -> None:
        """Add a tree."""
        self._grow(tree, len(self.nodes), root)

    def _grow(self, tree: int, start: int, own: Branch | Leaf) -> int:
        """Add a node and all below it; its number in its tree, whose first is at `start`."""
        place = len(self.nodes)
        number = place - start
        self.nodes.append((tree, number, 0, "LEAF", 0.0, 0, 0, 0))
        if isinstance(own, list):
            self.leaves += [(tree, number, target, weight) for target, weight in own]
            return number
        column, cut, low, yes, no = own
        true, false = self._grow(tree, start, yes), self._grow(tree, start, no)
        self.nodes[place] = (
            *(tree, number, column, "BRANCH_LEQ", round_down(cut)),
            *(true, false, int(low)),
        )
        return number

    def add(self, graph: Graph, rows: str, n_targets: int) -> str:
        """Write them, shape (n, targets)."""
        if not self.nodes:
            self.plant(0, [(0, 0.0)])  # ONNX wants a tree
        nodes, leaves = zip(*self.nodes, strict=True), zip(*self.leaves, strict=True)
        return graph.add(
            "TreeEnsembleRegressor",
            rows,
            domain="ai.onnx.ml",
            n_targets=n_targets,
            aggregate_function="SUM",
            post_transform="NONE",
            **dict(zip(_NODES, nodes, strict=True)),
            **dict(zip(_LEAVES, leaves, strict=True)),
        )


def add_ensemble(graph: Graph, own: TreeEnsemble, rows: str) -> str:
    """Outputs of trees of any depth, shape (n, K), of rows (n, d) in float32."""
    size, k, width = np.diff(own.start), own.base.size, own.value.shape[1]
    tree = np.repeat(np.arange(own.n_trees), size)
    node = np.arange(len(tree)) - np.repeat(own.start[:-1], size)
    leaf = own.column == LEAF
    places = np.flatnonzero(leaf)
    targets = own.output[tree[places], None] if width == 1 < k else np.arange(k)[None]
    largest = np.finfo(np.float32).max  # decides every row as an infinite cut does
    trees = _Trees()
    columns: tuple[NDArray[Any], ...] = (
        *(tree, node, np.where(leaf, 0, own.column), np.where(leaf, "LEAF", "BRANCH_LEQ")),
        *(np.clip(own.cut, -largest, largest), own.left, own.right, own.missing_left),
    )
    trees.nodes = list(zip(*(column.tolist() for column in columns), strict=True))
    leaves: tuple[NDArray[Any], ...] = (
        *(np.repeat(column[places], width) for column in (tree, node)),
        np.broadcast_to(targets, (len(places), width)).ravel(),
        own.value[places].ravel(),
    )
    trees.leaves = list(zip(*(column.tolist() for column in leaves), strict=True))
    return graph.add("Add", trees.add(graph, rows, k), own.base.astype(np.float32))


def add_questions(graph: Graph, rules: RuleTree, rows: str, n_actions: int) -> str:
    """1 for the action of each row (n, d), 0 for the others, shape (n, K)."""

    def below(place: int) -> Branch | Leaf:
        column = int(rules.column[place])
        if column == NONE:
            return [(int(rules.action[place]), 1.0)]
        cut, low = float(rules.cut[place]), bool(rules.missing_low[place])
        return column, cut, low, below(2 * place + 1), below(2 * place + 2)

    trees = _Trees()
    trees.plant(0, below(0))
    return trees.add(graph, rows, n_actions)


def round_down(cut: float) -> float:
    """The largest float32 that is not above a number."""
    near = np.float32(cut)
    return float(near if float(near) <= cut else np.nextafter(near, np.float32(-np.inf)))
