"""Networks as ONNX operations: encoder, static features beside its state, linear head."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from etips.errors import SettingError
from etips.explanation.onnx_graph import Graph
from etips.explanation.onnx_transformer import add_transformer
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.encoders.transformer import CausalTransformer
from etips.models.network import Network

Weights = Mapping[str, NDArray[np.float32]]

_STEPS_FIRST = [1, 0, 2]


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
    add = _ENCODERS.get(network.encoder.name)
    if add is None:
        rule = f"with the encoder {network.encoder.name} cannot be exported"
        raise SettingError("policy", rule, fix=f"Exported are {', '.join(_ENCODERS)}.")
    outputs = []
    for member in range(bundle.n_members):
        own = {name: value[member] for name, value in arrays.items()}
        inside = {n.removeprefix("encoder."): v for n, v in own.items() if n.startswith("encoder.")}
        states = add(graph, inside, steps, network.encoder)
        outputs.append(_add_head(graph, network, own, states, static))
    return outputs


def _add_head(graph: Graph, network: Network, own: Weights, states: str, static: str | None) -> str:
    """The linear head, shape (N, T, K)."""
    weight, bias = own["head.weight"], own["head.bias"]
    width = len(weight) - network.n_static
    outputs = graph.add("MatMul", states, graph.constant(weight[:width]))
    if static is not None:
        beside = graph.add("MatMul", static, graph.constant(weight[width:]))
        middle = graph.constant(np.array([1], np.int64))
        outputs = graph.add("Add", outputs, graph.add("Unsqueeze", beside, middle))
    return graph.add("Add", outputs, graph.constant(bias))


def _embedded(graph: Graph, own: Weights, steps: str) -> str:
    """Steps as the first units see them, where there are some."""
    if "embed.weight" not in own:
        return steps
    return _rectified(graph, own["embed.weight"], own["embed.bias"], steps)


def _rectified(
    graph: Graph, weight: NDArray[np.float32], bias: NDArray[np.float32], steps: str
) -> str:
    sums = graph.add("MatMul", steps, graph.constant(weight))
    return graph.add("Relu", graph.add("Add", sums, graph.constant(bias)))


def _add_last(graph: Graph, own: Weights, steps: str, _: Encoder) -> str:
    return _rectified(graph, own["weight"], own["bias"], steps)


def _add_transformer(graph: Graph, own: Weights, steps: str, encoder: Encoder) -> str:
    assert isinstance(encoder, CausalTransformer)
    return add_transformer(graph, own, steps, encoder)


def _add_gru(graph: Graph, own: Weights, steps: str, _: Encoder) -> str:
    """ONNX has the update gate first, ours is second."""
    hidden = len(own["recurrent"])
    bias = np.zeros(6 * hidden, np.float32)
    bias[: 3 * hidden] = _gates(own["bias"][None], (1, 0, 2))[0]
    bias[5 * hidden :] = own["new"]
    return _recurrent(graph, "GRU", own, steps, (1, 0, 2), bias, linear_before_reset=1)


def _add_lstm(graph: Graph, own: Weights, steps: str, _: Encoder) -> str:
    """ONNX has the gates input, output, forget, cell; ours are input, forget, output, cell."""
    hidden = len(own["recurrent"])
    bias = np.zeros(8 * hidden, np.float32)
    bias[: 4 * hidden] = _gates(own["bias"][None], (0, 2, 1, 3))[0]
    return _recurrent(graph, "LSTM", own, steps, (0, 2, 1, 3), bias)


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
    first = graph.add("Transpose", _embedded(graph, own, steps), perm=_STEPS_FIRST)
    weight, recurrent = (
        np.ascontiguousarray(_gates(own[name], order).T[None]) for name in ("weight", "recurrent")
    )
    states = graph.add_many(
        kind,
        first,
        *(graph.constant(value) for value in (weight, recurrent, bias[None])),
        n_outputs=1,
        hidden_size=len(own["recurrent"]),
        **more,  # type: ignore[arg-type]
    )[0]  # (T, 1, N, H)
    flat = graph.add("Squeeze", states, graph.constant(np.array([1], np.int64)))
    return graph.add("Transpose", flat, perm=_STEPS_FIRST)


def _gates(values: NDArray[np.float32], order: tuple[int, ...]) -> NDArray[np.float32]:
    """Columns of the gates in another order."""
    parts = np.split(values, len(order), axis=-1)
    return np.concatenate([parts[place] for place in order], axis=-1)


_ENCODERS: Mapping[str, Callable[[Graph, Weights, str, Encoder], str]] = {
    "gru": _add_gru,
    "lstm": _add_lstm,
    "transformer": _add_transformer,
    "last": _add_last,
}
