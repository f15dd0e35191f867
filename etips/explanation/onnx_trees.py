"""Boosted trees, and trees of questions, as one ONNX operation.

Rows are float32 there, and so are cuts: each is rounded down, so that a float32 value is at most
the rounded cut exactly where it is at most the cut.
"""

from dataclasses import dataclass, field

import numpy as np

from etips.explanation.onnx_graph import Graph
from etips.models.forest import EVERY, LEAVES, Forest
from etips.policies.rule_tree import NONE, RuleTree


@dataclass
class _Nodes:
    """Nodes of all trees, as ONNX lists them."""

    tree: list[int] = field(default_factory=list)
    node: list[int] = field(default_factory=list)
    feature: list[int] = field(default_factory=list)
    mode: list[str] = field(default_factory=list)
    value: list[float] = field(default_factory=list)
    true: list[int] = field(default_factory=list)
    false: list[int] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    leaf_tree: list[int] = field(default_factory=list)
    leaf_node: list[int] = field(default_factory=list)
    leaf_target: list[int] = field(default_factory=list)
    leaf_weight: list[float] = field(default_factory=list)

    def place(self, tree: int) -> int:
        """Room for a node of a tree; it is a leaf until it asks."""
        number = self.node[-1] + 1 if self.tree and self.tree[-1] == tree else 0
        self.tree.append(tree)
        self.node.append(number)
        self.mode.append("LEAF")
        for column in (self.feature, self.true, self.false, self.missing):
            column.append(0)
        self.value.append(0.0)
        return len(self.tree) - 1

    def ask(self, at: int, column: int, cut: float, missing_low: bool) -> None:
        self.mode[at] = "BRANCH_LEQ"
        self.feature[at], self.value[at] = column, round_down(cut)
        self.missing[at] = int(missing_low)

    def say(self, at: int, target: int, weight: float) -> None:
        self.leaf_tree.append(self.tree[at])
        self.leaf_node.append(self.node[at])
        self.leaf_target.append(target)
        self.leaf_weight.append(weight)


def add_forest(graph: Graph, forest: Forest, rows: str) -> str:
    """Outputs of trees, shape (n, J * K), of rows (n, d) in float32."""
    nodes = _Nodes()
    n_members, k = forest.base.shape
    for tree in range(forest.n_trees):
        output, member = int(forest.output[tree]), int(forest.member[tree])
        targets = range(k) if output == EVERY else (output,)
        whole = int(np.bitwise_or.reduce(forest.left[tree] | forest.right[tree]))
        _grow(nodes, forest, tree, whole or 1, [member * k + own for own in targets])
    if not nodes.tree:
        nodes.say(nodes.place(0), 0, 0.0)
    said = _add(graph, nodes, rows, n_members * k)
    # onnxruntime leaves base values out where no tree speaks of an output, so they are added here.
    return graph.add("Add", said, graph.constant(forest.base.ravel().astype(np.float32)))


def add_questions(graph: Graph, tree: RuleTree, rows: str, n_actions: int) -> str:
    """1 for the action of each row (n, d), 0 for the others, shape (n, K)."""
    nodes = _Nodes()

    def walk(place: int) -> int:
        at = nodes.place(0)
        if tree.column[place] == NONE:
            nodes.say(at, int(tree.action[place]), 1.0)
            return at
        low = bool(tree.missing_low[place])
        nodes.ask(at, int(tree.column[place]), float(tree.cut[place]), low)
        nodes.true[at] = nodes.node[walk(2 * place + 1)]
        nodes.false[at] = nodes.node[walk(2 * place + 2)]
        return at

    walk(0)
    return _add(graph, nodes, rows, n_actions)


def round_down(cut: float) -> float:
    """The largest float32 that is not above a number."""
    near = np.float32(cut)
    return float(near if float(near) <= cut else np.nextafter(near, np.float32(-np.inf)))


def _grow(nodes: _Nodes, forest: Forest, tree: int, leaves: int, targets: list[int]) -> int:
    """Write what lies above some leaves, a bit each; the place of its first node."""
    below = forest.left[tree].astype(int) | forest.right[tree].astype(int)
    found = np.flatnonzero((below == leaves) & (below > 0))
    if not found.size:
        at = nodes.place(tree)
        leaf = int(leaves).bit_length() - 1
        for target in targets:
            nodes.say(at, target, float(forest.value[tree, min(leaf, LEAVES - 1)]))
        return at
    node = int(found[0])
    sides = int(forest.left[tree, node]), int(forest.right[tree, node])
    cut, low = float(forest.cut[tree, node]), bool(forest.missing_left[tree, node])
    if np.isinf(cut):  # everybody goes the same way
        return _grow(nodes, forest, tree, sides[0] if cut > 0 else sides[1], targets)
    at = nodes.place(tree)
    nodes.ask(at, int(forest.column[tree, node]), cut, low)
    nodes.true[at] = nodes.node[_grow(nodes, forest, tree, sides[0], targets)]
    nodes.false[at] = nodes.node[_grow(nodes, forest, tree, sides[1], targets)]
    return at


def _add(graph: Graph, nodes: _Nodes, rows: str, n_targets: int) -> str:
    return graph.add(
        "TreeEnsembleRegressor",
        rows,
        domain="ai.onnx.ml",
        n_targets=n_targets,
        aggregate_function="SUM",
        post_transform="NONE",
        nodes_treeids=nodes.tree,
        nodes_nodeids=nodes.node,
        nodes_featureids=nodes.feature,
        nodes_modes=nodes.mode,
        nodes_values=nodes.value,
        nodes_truenodeids=nodes.true,
        nodes_falsenodeids=nodes.false,
        nodes_missing_value_tracks_true=nodes.missing,
        target_treeids=nodes.leaf_tree,
        target_nodeids=nodes.leaf_node,
        target_ids=nodes.leaf_target,
        target_weights=nodes.leaf_weight,
    )
