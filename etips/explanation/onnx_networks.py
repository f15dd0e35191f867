"""Networks as ONNX operations: encoder, static features beside its state, linear head."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from etips.errors import SettingError
from etips.explanation.onnx_graph import Graph, ints
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.encoders.transformer import LONGEST_WAVE, CausalTransformer

Weights = Mapping[str, NDArray[np.float32]]

_STEPS_FIRST = [1, 0, 2]
_NORM_EPSILON = 1e-5  # of torch.nn.LayerNorm


def add_networks(graph: Graph, bundle: Bundle, steps: str, static: str | None) -> list[str]:
    """Outputs of each network at every step, shape (N, T, K) each.

    Args:
        graph: Where to.
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
        own = {name: value[member] for name, value in arrays.items()}
        inside = {n.removeprefix("encoder."): v for n, v in own.items() if n.startswith("encoder.")}
        states = add_encoder(graph, inside, steps, network.encoder)
        head = own["head.weight"]
        width = len(head) - network.n_static
        said = graph.add("MatMul", states, head[:width])
        if static is not None:
            beside = graph.add("MatMul", static, head[width:])
            said = graph.add("Add", said, graph.add("Unsqueeze", beside, ints(1)))
        outputs.append(graph.add("Add", said, own["head.bias"]))
    return outputs


def _rectified(graph: Graph, own: Weights, name: str, steps: str) -> str:
    sums = graph.add("MatMul", steps, own[f"{name}weight"])
    return graph.add("Relu", graph.add("Add", sums, own[f"{name}bias"]))


def _add_last(graph: Graph, own: Weights, steps: str, _: Encoder) -> str:
    return _rectified(graph, own, "", steps)


def _add_gru(graph: Graph, own: Weights, steps: str, _: Encoder) -> str:
    """ONNX has the update gate first, ours is second."""
    order, hidden = (1, 0, 2), len(own["recurrent"])
    none = np.zeros(2 * hidden, np.float32)
    bias = np.concatenate([_gates(own["bias"], order), none, own["new"]])
    return _recurrent(graph, "GRU", own, steps, order, bias, linear_before_reset=1)


def _add_lstm(graph: Graph, own: Weights, steps: str, _: Encoder) -> str:
    """ONNX has the gates input, output, forget, cell; ours are input, forget, output, cell."""
    order, hidden = (0, 2, 1, 3), len(own["recurrent"])
    bias = np.concatenate([_gates(own["bias"], order), np.zeros(4 * hidden, np.float32)])
    return _recurrent(graph, "LSTM", own, steps, order, bias)


def _recurrent(
    graph: Graph,
    kind: str,
    own: Weights,
    steps: str,
    order: tuple[int, ...],
    bias: NDArray[np.float32],
    **more: int,
) -> str:
    """States of a recurrent layer, shape (N, T, H)."""
    if "embed.weight" in own:
        steps = _rectified(graph, own, "embed.", steps)
    first = graph.add("Transpose", steps, perm=_STEPS_FIRST)
    weights = (_gates(own[name], order).T[None] for name in ("weight", "recurrent"))
    hidden = len(own["recurrent"])
    states = graph.add(
        kind, first, *weights, bias[None], hidden_size=hidden, **more
    )  # (T, 1, N, H)
    return graph.add("Transpose", graph.add("Squeeze", states, ints(1)), perm=_STEPS_FIRST)


def _gates(values: NDArray[np.float32], order: tuple[int, ...]) -> NDArray[np.float32]:
    """Columns of the gates in another order."""
    parts = np.split(values, len(order), axis=-1)
    return np.concatenate([parts[place] for place in order], axis=-1)


def _add_transformer(graph: Graph, own: Weights, steps: str, encoder: Encoder) -> str:
    """States after every step, for stays of any length, shape (N, T, hidden)."""
    assert isinstance(encoder, CausalTransformer)
    length = graph.add("Slice", graph.add("Shape", steps), ints(1), ints(2))  # (1,)
    start = _linear(graph, own, "entry", steps)
    states = graph.add("Add", start, _positions(graph, length, encoder.hidden))
    square = graph.add("Concat", length, length, axis=0)
    ones = graph.add("Expand", np.ones((1, 1), np.float32), square)
    above = graph.add("Trilu", ones, np.int64(1), upper=1)
    later = graph.add("Greater", above, np.float32(0.5))  # which steps come after which, (T, T)
    for layer in range(encoder.n_layers):
        inside = f"layers.{layer}"
        before = _normalised(graph, own, f"{inside}.before", states)
        taken = _attend(graph, own, inside, before, later, encoder)
        states = graph.add("Add", states, _linear(graph, own, f"{inside}.answer", taken))
        between = _normalised(graph, own, f"{inside}.between", states)
        wide = _gelu(graph, _linear(graph, own, f"{inside}.wide", between))
        states = graph.add("Add", states, _linear(graph, own, f"{inside}.narrow", wide))
    return _normalised(graph, own, "last", states)


def _linear(graph: Graph, own: Weights, name: str, value: str) -> str:
    sums = graph.add("MatMul", value, own[f"{name}.weight"].T)
    return graph.add("Add", sums, own[f"{name}.bias"])


def _normalised(graph: Graph, own: Weights, name: str, value: str) -> str:
    pair = own[f"{name}.weight"], own[f"{name}.bias"]
    return graph.add("LayerNormalization", value, *pair, axis=-1, epsilon=_NORM_EPSILON)


def _gelu(graph: Graph, value: str) -> str:
    bent = graph.add("Erf", graph.add("Div", value, np.float32(np.sqrt(2))))
    half = graph.add("Mul", value, np.float32(0.5))
    return graph.add("Mul", half, graph.add("Add", bent, np.float32(1)))


def _positions(graph: Graph, length: str, hidden: int) -> str:
    """Sines and cosines of the step's number, shape (T, hidden)."""
    count = graph.add("Squeeze", length)
    numbers = graph.cast(graph.add("Range", np.int64(0), count, np.int64(1)), "FLOAT")
    power = np.arange(0, hidden, 2, dtype=np.float32) / np.float32(hidden)
    waves = (np.float32(LONGEST_WAVE) ** power).astype(np.float32)
    angle = graph.add("Div", graph.add("Unsqueeze", numbers, ints(1)), waves)
    return graph.add("Concat", graph.add("Sin", angle), graph.add("Cos", angle), axis=1)


def _attend(
    graph: Graph, own: Weights, inside: str, states: str, later: str, encoder: CausalTransformer
) -> str:
    """What each step takes from itself and the steps before it, shape (N, T, hidden)."""
    width = encoder.hidden // encoder.n_heads
    asked = _linear(graph, own, f"{inside}.ask", states)
    heads = graph.add("Reshape", asked, ints(0, 0, 3, encoder.n_heads, width))
    heads = graph.add("Transpose", heads, perm=[2, 0, 3, 1, 4])
    each = graph.add_many("Split", heads, ints(1, 1, 1), n_outputs=3, axis=0)
    query, key, value = (graph.add("Squeeze", one, ints(0)) for one in each)  # (N, heads, T, width)
    products = graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 1, 3, 2]))
    scores = graph.add("Div", products, np.float32(np.sqrt(width)))
    share = graph.add("Softmax", graph.add("Where", later, np.float32(-np.inf), scores), axis=-1)
    taken = graph.add("Transpose", graph.add("MatMul", share, value), perm=[0, 2, 1, 3])
    return graph.add("Reshape", taken, ints(0, 0, encoder.hidden))


_ENCODERS: Mapping[str, Callable[[Graph, Weights, str, Encoder], str]] = {
    "gru": _add_gru,
    "lstm": _add_lstm,
    "transformer": _add_transformer,
    "last": _add_last,
}
