"""The transformer sees no later step; that it answers alike is in test_onnx_export."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from etips.explanation.onnx_graph import IR_VERSION, OPSET, Graph  # noqa: E402
from etips.explanation.onnx_transformer import add_transformer  # noqa: E402
from etips.models.encoders.transformer import CausalTransformer  # noqa: E402


def test_later_steps_change_nothing_at_any_length():
    encoder = CausalTransformer(8, 2, 1)
    weights = {name: value[0].numpy() for name, value in encoder.start(3, [0]).items()}
    graph = Graph()
    graph.rename(add_transformer(graph, weights, "x", encoder), "y")
    helper, kinds = onnx.helper, onnx.TensorProto
    ends = [helper.make_tensor_value_info(n, kinds.FLOAT, ["N", "T", w]) for n, w in
            (("x", 3), ("y", 8))]  # fmt: skip
    made = helper.make_graph(graph.nodes, "test", ends[:1], ends[1:], graph.constants)
    sets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(made, opset_imports=sets, ir_version=IR_VERSION)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    steps = np.random.default_rng(0).normal(size=(2, 6, 3)).astype(np.float32)
    whole = session.run(None, {"x": steps})[0]
    part = session.run(None, {"x": steps[:, :4]})[0]
    np.testing.assert_allclose(whole[:, :4], part, atol=1e-6)
