"""Networks, trees and models of rows as ONNX operations, and the rows that those read.

Written by hand: torch's exporter needs onnxscript, and unrolls our recurrences to a fixed number of
steps; of trees and summaries it knows nothing. Rows and cuts of trees are float32.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.data.history_rows import LOG_SHIFT, have_gaps, is_wide, kept_features
from etips.data.schema import MISSING_SUFFIX, Schema
from etips.errors import SettingError
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.encoders.transformer import LONGEST_WAVE, CausalTransformer
from etips.models.row_model import LIMIT, RowModel
from etips.models.tree_ensemble import LEAF, TreeEnsemble

Value = str | NDArray[Any] | np.generic
"""A result by its name, or numbers that belong to the graph."""

Weights = Mapping[str, NDArray[np.float32]]

_STATES = ("newest", "total", "count", "earlier", "age", "lowest", "highest", "first")
_STEPS_FIRST = [1, 0, 2]
_NORM_EPSILON = 1e-5  # of torch.nn.LayerNorm


def ints(*values: int) -> NDArray[np.int64]:
    """Whole numbers as ONNX takes them: axes, shapes, places."""
    return np.array(values, np.int64)


class Graph:
    """ONNX operations while they are written: every call adds one and gives its result's name.

    onnx is optional, so it is imported where a graph is begun.

    Args:
        prefix: Of the names; a graph within another needs one of its own.
    """

    def __init__(self, prefix: str = "") -> None:
        try:
            import onnx  # noqa: PLC0415  # optional
        except ImportError:
            fix = "Install it with: pip install 'etips[onnx]'."
            raise SettingError("export", "needs onnx", fix=fix) from None
        self.onnx: Any = onnx
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, kind: str, *inputs: Value, **attributes: Any) -> str:  # noqa: ANN401  # onnx's own
        """One operation with one result."""
        return self.add_many(kind, 1, *inputs, **attributes)[0]

    def add_many(self, kind: str, n_outputs: int, *inputs: Value, **attributes: Any) -> list[str]:  # noqa: ANN401
        """One operation with several results."""
        taken = []
        for own in inputs:
            if not isinstance(own, str):
                array = np.ascontiguousarray(own).reshape(np.shape(own))
                own = f"{self.prefix}c{len(self.constants)}"
                self.constants.append(self.onnx.numpy_helper.from_array(array, own))
            taken.append(own)
        names = [f"{self.prefix}{kind.lower()}{len(self.nodes)}_{k}" for k in range(n_outputs)]
        self.nodes.append(self.onnx.helper.make_node(kind, taken, names, **attributes))
        return names

    def cast(self, value: str, kind: str) -> str:
        """The same numbers as FLOAT, DOUBLE, INT64 or BOOL."""
        return self.add("Cast", value, to=getattr(self.onnx.TensorProto, kind))

    def mean(self, parts: list[str]) -> str:
        """The mean of several results of the same shape."""
        return parts[0] if len(parts) == 1 else self.add("Mean", *parts)


def add_networks(graph: Graph, bundle: Bundle, steps: str, static: str | None) -> list[str]:
    """Outputs of each network at every step, shape (N, T, K) each.

    Args:
        graph: Written to.
        bundle: The networks.
        steps: Scaled features, shape (N, T, d).
        static: Scaled static features, shape (N, s); None where there are none.
    """
    arrays = {name: v.detach().cpu().float().numpy() for name, v in bundle.parameters.items()}
    network = bundle.network
    add_encoder = _ENCODERS.get(network.encoder.name)
    if add_encoder is None:
        rule = f"with the encoder {network.encoder.name} cannot be exported"
        raise SettingError("policy", rule, fix=f"Exported are {', '.join(_ENCODERS)}.")
    outputs = []
    for member in range(bundle.n_members):
        own = {name.removeprefix("encoder."): value[member] for name, value in arrays.items()}
        states = add_encoder(graph, own, steps, network.encoder)
        head, bias = own["head.weight"], own["head.bias"]
        width = len(head) - network.n_static
        sums = graph.add("MatMul", states, head[:width])
        if static is not None:
            beside = graph.add("MatMul", static, head[width:])
            sums = graph.add("Add", sums, graph.add("Unsqueeze", beside, ints(1)))
        outputs.append(graph.add("Add", sums, bias))
    return outputs


def _add_last(graph: Graph, own: Weights, steps: str, _: Encoder, name: str = "") -> str:
    sums = graph.add("MatMul", steps, own[f"{name}weight"])
    return graph.add("Relu", graph.add("Add", sums, own[f"{name}bias"]))


def _gates(values: NDArray[np.float32], order: tuple[int, ...]) -> NDArray[np.float32]:
    """Columns of the gates in another order."""
    parts = np.split(values, len(order), axis=-1)
    return np.concatenate([parts[place] for place in order], axis=-1)


def _add_gru(graph: Graph, own: Weights, steps: str, encoder: Encoder) -> str:
    """ONNX has the update gate first, ours is second."""
    order, none = (1, 0, 2), np.zeros(2 * len(own["recurrent"]), np.float32)
    bias = np.concatenate([_gates(own["bias"], order), none, own["new"]])
    return _recurrent(graph, "GRU", own, steps, encoder, order, bias, linear_before_reset=1)


def _add_lstm(graph: Graph, own: Weights, steps: str, encoder: Encoder) -> str:
    """ONNX has the gates input, output, forget, cell; ours are input, forget, output, cell."""
    order, none = (0, 2, 1, 3), np.zeros(4 * len(own["recurrent"]), np.float32)
    bias = np.concatenate([_gates(own["bias"], order), none])
    return _recurrent(graph, "LSTM", own, steps, encoder, order, bias)


def _recurrent(
    graph: Graph,
    kind: str,
    own: Weights,
    steps: str,
    encoder: Encoder,
    order: tuple[int, ...],
    bias: NDArray[np.float32],
    **more: int,
) -> str:
    """States of a recurrent layer, shape (N, T, H)."""
    if "embed.weight" in own:
        steps = _add_last(graph, own, steps, encoder, "embed.")
    first = graph.add("Transpose", steps, perm=_STEPS_FIRST)
    weights = (_gates(own[name], order).T[None] for name in ("weight", "recurrent"))
    hidden = len(own["recurrent"])
    states = graph.add(
        kind, first, *weights, bias[None], hidden_size=hidden, **more
    )  # (T, 1, N, H)
    return graph.add("Transpose", graph.add("Squeeze", states, ints(1)), perm=_STEPS_FIRST)


def _add_transformer(graph: Graph, own: Weights, steps: str, encoder: Encoder) -> str:
    """States after every step, for stays of any length, shape (N, T, hidden)."""
    assert isinstance(encoder, CausalTransformer)
    add, hidden, n_heads = graph.add, encoder.hidden, encoder.n_heads

    def linear(name: str, value: str) -> str:
        return add("Add", add("MatMul", value, own[f"{name}.weight"].T), own[f"{name}.bias"])

    def normalised(name: str, value: str) -> str:
        pair = own[f"{name}.weight"], own[f"{name}.bias"]
        return add("LayerNormalization", value, *pair, axis=-1, epsilon=_NORM_EPSILON)

    length = add("Slice", add("Shape", steps), ints(1), ints(2))  # (1,)
    numbers = add("Range", np.int64(0), add("Squeeze", length), np.int64(1))
    power = np.arange(0, hidden, 2, dtype=np.float32) / np.float32(hidden)
    waves = (np.float32(LONGEST_WAVE) ** power).astype(np.float32)
    angle = add("Div", add("Unsqueeze", graph.cast(numbers, "FLOAT"), ints(1)), waves)
    positions = add("Concat", add("Sin", angle), add("Cos", angle), axis=1)  # (T, hidden)
    states = add("Add", linear("entry", steps), positions)
    square = add("Concat", length, length, axis=0)
    ones = add("Expand", np.ones((1, 1), np.float32), square)
    above = add("Trilu", ones, np.int64(1), upper=1)
    later = add("Greater", above, np.float32(0.5))  # which steps come after which, (T, T)
    width = hidden // n_heads
    for layer in (f"layers.{number}" for number in range(encoder.n_layers)):
        asked = linear(f"{layer}.ask", normalised(f"{layer}.before", states))
        heads = add("Reshape", asked, ints(0, 0, 3, n_heads, width))
        heads = add("Transpose", heads, perm=[2, 0, 3, 1, 4])
        each = graph.add_many("Split", 3, heads, ints(1, 1, 1), axis=0)
        query, key, value = (add("Squeeze", one, ints(0)) for one in each)  # (N, heads, T, width)
        products = add("MatMul", query, add("Transpose", key, perm=[0, 1, 3, 2]))
        scores = add("Div", products, np.float32(np.sqrt(width)))
        share = add("Softmax", add("Where", later, np.float32(-np.inf), scores), axis=-1)
        taken = add("Transpose", add("MatMul", share, value), perm=[0, 2, 1, 3])
        answer = linear(f"{layer}.answer", add("Reshape", taken, ints(0, 0, hidden)))
        states = add("Add", states, answer)
        wide = linear(f"{layer}.wide", normalised(f"{layer}.between", states))
        bent = add("Add", add("Erf", add("Div", wide, np.float32(np.sqrt(2)))), np.float32(1))
        gelu = add("Mul", add("Mul", wide, np.float32(0.5)), bent)
        states = add("Add", states, linear(f"{layer}.narrow", gelu))
    return normalised("last", states)


_ENCODERS: Mapping[str, Callable[[Graph, Weights, str, Encoder], str]] = {
    "gru": _add_gru,
    "lstm": _add_lstm,
    "transformer": _add_transformer,
    "last": _add_last,
}


def add_summary(graph: Graph, schema: Schema, static: str | None, *, extremes: bool) -> str:
    """The columns of `summarise_history` after every step of "steps", shape (N, T, columns).

    Args:
        graph: Written to.
        schema: Of the policy.
        static: Static features at every step, shape (N, T, s), where there are some.
        extremes: Whether the lowest, the highest and the first value so far follow.
    """
    add, kept, wide = graph.add, kept_features(schema), is_wide(schema)
    walked = _walk(graph, _read(graph, schema, kept), len(kept))
    newest, total, count, earlier, age, *extreme = walked
    parts = [newest, add("Div", total, count)]  # nothing by nothing is NaN
    gaps = np.flatnonzero(have_gaps(schema, kept))
    if not wide:
        parts.append(add("Sub", newest, earlier))
        if gaps.size:
            parts.append(add("Gather", age, gaps, axis=-1))
    first, one = add("Gather", "steps", ints(0), axis=-1), np.float32(1)
    ones = add("Where", add("IsNaN", first), one, one)
    parts.append(add("CumSum", ones, np.int64(1)))
    parts += [] if static is None else [static]
    if extremes and not wide:
        parts += extreme
    return add("Concat", *parts, axis=-1)


def _read(graph: Graph, schema: Schema, kept: list[int]) -> str:
    """The features, NaN where missing, as logarithms where learners take them, (N, T, d)."""
    add, nothing = graph.add, np.float32(np.nan)
    names = [schema.sequence[place] for place in kept]
    source = {name: place for place, name in enumerate(schema.sequence)}
    features = add("Gather", "steps", ints(*kept), axis=-1)
    marked = np.array([name + MISSING_SUFFIX in source for name in names])
    if marked.any():
        # A feature without a mark is looked for in itself, and does not count.
        places = [source.get(name + MISSING_SUFFIX, source[name]) for name in names]
        marks = add("Gather", "steps", ints(*places), axis=-1)
        missing = add("And", add("Equal", marks, np.float32(1)), marked)
        features = add("Where", missing, nothing, features)
    logs = np.array([name in schema.logarithms for name in names])
    if logs.any():
        shifted = add("Add", features, np.float32(LOG_SHIFT))
        sound = add("Greater", shifted, np.float32(0))
        features = add("Where", logs, add("Log", add("Where", sound, shifted, nothing)), features)
    return features


def _walk(graph: Graph, features: str, width: int) -> list[str]:
    """What is known of the history after each step, shape (N, T, d) each; see `_STATES`."""
    helper, kind = graph.onnx.helper, graph.onnx.TensorProto.FLOAT
    body, now, zero = Graph("step_"), "step_now", np.float32(0)
    add, was = body.add, {name: f"step_{name}" for name in _STATES}
    gap = add("IsNaN", now)
    alone = add("Where", add("IsNaN", was["newest"]), now, was["newest"])
    states = [
        add("Where", gap, was["newest"], now),
        add("Add", was["total"], add("Where", gap, zero, now)),
        add("Add", was["count"], body.cast(add("Not", gap), "FLOAT")),
        add("Where", gap, was["earlier"], alone),
        add("Where", gap, add("Add", was["age"], np.float32(1)), zero),
    ]
    for name, way in (("lowest", "LessOrEqual"), ("highest", "GreaterOrEqual")):
        kept = add("Or", gap, add(way, was[name], now))  # never of NaN
        states.append(add("Where", kept, was[name], now))
    states.append(add("Where", add("IsNaN", was["first"]), now, was["first"]))
    shown = [add("Identity", state) for state in states]
    taken, given = (
        [helper.make_tensor_value_info(name, kind, ["N", width]) for name in names]
        for names in ((*was.values(), now), (*states, *shown))
    )
    step = helper.make_graph(body.nodes, "step", taken, given, body.constants)
    stays = graph.add("Slice", graph.add("Shape", features), ints(0), ints(1))
    shape = graph.add("Concat", stays, ints(width), axis=0)
    start = [graph.add("Expand", np.float32(own), shape) for own in (np.nan, 0, 0, *[np.nan] * 5)]
    n = len(_STATES)
    axes = {"scan_input_axes": [1], "scan_output_axes": [1] * n}
    return graph.add_many("Scan", 2 * n, *start, features, body=step, num_scan_inputs=1, **axes)[n:]


def add_row_model(graph: Graph, model: RowModel, rows: str) -> list[str]:
    """Outputs of each member of a model of rows, shape (n, K), in float64 as `RowModel` does."""
    add = graph.add
    rows = add("Div", add("Sub", graph.cast(rows, "DOUBLE"), model.mean), model.scale)
    held = add("Clip", rows, np.float64(-LIMIT), np.float64(LIMIT))
    lifted = add("Where", add("IsNaN", rows), np.float64(0), held)
    kind = "MatMul"
    if model.form != "linear":
        lifted = add("MatMul", lifted, model.basis.T)
    if model.form == "waves":
        size = np.float64(np.sqrt(2 / max(len(model.phase), 1)))
        lifted = add("Mul", size, add("Cos", add("Add", lifted, model.phase)))
    elif model.form == "squares":
        lifted = add("Add", lifted, model.phase)
        lifted = add("Mul", lifted, lifted)
    elif model.form == "nearest":
        near = add("Sub", (model.basis**2).sum(axis=1), add("Mul", lifted, np.float64(2)))
        lifted, kind = add("ArgMin", near, axis=-1, keepdims=0), "Gather"
    outputs = []
    for weight, base in zip(model.weight, model.base, strict=True):
        own = add(kind, weight, lifted) if kind == "Gather" else add(kind, lifted, weight)
        outputs.append(graph.cast(add("Add", own, base), "FLOAT"))
    return outputs


def add_ensemble(graph: Graph, own: TreeEnsemble, rows: str) -> str:
    """Outputs of trees of any depth, shape (n, K), of rows (n, d) in float32."""
    size, k, width = np.diff(own.start), own.base.size, own.value.shape[1]
    tree = np.repeat(np.arange(own.n_trees), size)
    node = np.arange(len(tree)) - np.repeat(own.start[:-1], size)
    leaf = own.column == LEAF
    places = np.flatnonzero(leaf)
    targets = own.output[tree[places], None] if width == 1 < k else np.arange(k)[None]
    largest = np.finfo(np.float32).max  # decides every row as an infinite cut does
    lists: dict[str, NDArray[Any]] = {
        "nodes_treeids": tree,
        "nodes_nodeids": node,
        "nodes_featureids": np.where(leaf, 0, own.column),
        "nodes_modes": np.where(leaf, "LEAF", "BRANCH_LEQ"),
        "nodes_values": np.clip(own.cut, -largest, largest),
        "nodes_truenodeids": own.left,
        "nodes_falsenodeids": own.right,
        "nodes_missing_value_tracks_true": own.missing_left,
        "target_treeids": np.repeat(tree[places], width),
        "target_nodeids": np.repeat(node[places], width),
        "target_ids": np.broadcast_to(targets, (len(places), width)).ravel(),
        "target_weights": own.value[places].ravel(),
    }
    form = {"domain": "ai.onnx.ml", "aggregate_function": "SUM", "post_transform": "NONE"}
    values = {name: column.tolist() for name, column in lists.items()}
    sums = graph.add("TreeEnsembleRegressor", rows, n_targets=k, **form, **values)
    return graph.add("Add", sums, own.base.astype(np.float32))
