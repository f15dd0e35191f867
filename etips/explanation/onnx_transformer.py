"""The causal transformer as ONNX operations, for stays of any length."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from etips.explanation.onnx_graph import Graph
from etips.models.encoders.transformer import LONGEST_WAVE, CausalTransformer

Weights = Mapping[str, NDArray[np.float32]]

_NORM_EPSILON = 1e-5  # of torch.nn.LayerNorm


def add_transformer(graph: Graph, own: Weights, steps: str, encoder: CausalTransformer) -> str:
    """States after every step, shape (N, T, hidden).

    Args:
        graph: Where to.
        own: Parameters of one network.
        steps: Shape (N, T, d).
        encoder: Its sizes.
    """
    length = _length(graph, steps)
    states = graph.add(
        "Add", _linear(graph, own, "entry", steps), _positions(graph, length, encoder.hidden)
    )
    later = _later(graph, length)
    for layer in range(encoder.n_layers):
        inside = f"layers.{layer}"
        before = _normalised(graph, own, f"{inside}.before", states)
        taken = _attend(graph, own, inside, before, later, encoder.n_heads, encoder.hidden)
        states = graph.add("Add", states, _linear(graph, own, f"{inside}.answer", taken))
        between = _normalised(graph, own, f"{inside}.between", states)
        wide = _gelu(graph, _linear(graph, own, f"{inside}.wide", between))
        states = graph.add("Add", states, _linear(graph, own, f"{inside}.narrow", wide))
    return _normalised(graph, own, "last", states)


def _linear(graph: Graph, own: Weights, name: str, value: str) -> str:
    weight = np.ascontiguousarray(own[f"{name}.weight"].T)
    sums = graph.add("MatMul", value, graph.constant(weight))
    return graph.add("Add", sums, graph.constant(own[f"{name}.bias"]))


def _normalised(graph: Graph, own: Weights, name: str, value: str) -> str:
    weight, bias = (graph.constant(own[f"{name}.{part}"]) for part in ("weight", "bias"))
    return graph.add("LayerNormalization", value, weight, bias, axis=-1, epsilon=_NORM_EPSILON)


def _gelu(graph: Graph, value: str) -> str:
    bent = graph.add("Erf", graph.add("Div", value, graph.constant(np.float32(np.sqrt(2)))))
    half = graph.add("Mul", value, graph.constant(np.float32(0.5)))
    return graph.add("Mul", half, graph.add("Add", bent, graph.constant(np.float32(1))))


def _length(graph: Graph, steps: str) -> str:
    """Number of steps, shape (1,)."""
    start, stop = (graph.constant(np.array([at], np.int64)) for at in (1, 2))
    return graph.add("Slice", graph.add("Shape", steps), start, stop)


def _positions(graph: Graph, length: str, hidden: int) -> str:
    """Sines and cosines of the step's number, shape (T, hidden)."""
    zero, one = (graph.constant(np.int64(at)) for at in (0, 1))
    count = graph.add("Squeeze", length)
    numbers = graph.cast(graph.add("Range", zero, count, one), "FLOAT")
    column = graph.add("Unsqueeze", numbers, graph.constant(np.array([1], np.int64)))
    power = np.arange(0, hidden, 2, dtype=np.float32) / np.float32(hidden)
    waves = (np.float32(LONGEST_WAVE) ** power).astype(np.float32)
    angle = graph.add("Div", column, graph.constant(waves))
    return graph.add("Concat", graph.add("Sin", angle), graph.add("Cos", angle), axis=1)


def _later(graph: Graph, length: str) -> str:
    """Which steps come after which, shape (T, T)."""
    square = graph.add("Concat", length, length, axis=0)
    ones = graph.add("Expand", graph.constant(np.ones((1, 1), np.float32)), square)
    above = graph.add("Trilu", ones, graph.constant(np.int64(1)), upper=1)
    return graph.add("Greater", above, graph.constant(np.float32(0.5)))


def _attend(
    graph: Graph, own: Weights, inside: str, states: str, later: str, n_heads: int, hidden: int
) -> str:
    """What each step takes from itself and the steps before it, shape (N, T, hidden)."""
    width = hidden // n_heads
    asked = _linear(graph, own, f"{inside}.ask", states)
    parts = graph.constant(np.array([0, 0, 3, n_heads, width], np.int64))
    heads = graph.add("Transpose", graph.add("Reshape", asked, parts), perm=[2, 0, 3, 1, 4])
    each = graph.add_many("Split", heads, graph.constant(np.ones(3, np.int64)), n_outputs=3, axis=0)
    first = graph.constant(np.array([0], np.int64))
    query, key, value = (graph.add("Squeeze", one, first) for one in each)  # (N, heads, T, width)
    products = graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 1, 3, 2]))
    scores = graph.add("Div", products, graph.constant(np.float32(np.sqrt(width))))
    never = graph.constant(np.float32(-np.inf))
    share = graph.add("Softmax", graph.add("Where", later, never, scores), axis=-1)
    taken = graph.add("Transpose", graph.add("MatMul", share, value), perm=[0, 2, 1, 3])
    return graph.add("Reshape", taken, graph.constant(np.array([0, 0, hidden], np.int64)))
