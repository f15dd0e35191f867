"""A graph while it is written."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")

from etips.explanation.onnx_graph import IR_VERSION, OPSET, Graph  # noqa: E402


def test_operations_run_in_the_order_they_were_added():
    graph = Graph()
    more = graph.add("Add", "x", graph.constant(np.float32(2)))
    graph.rename(graph.cast(graph.add("Mul", more, more), "INT64"), "y")
    helper, kinds = onnx.helper, onnx.TensorProto
    made = helper.make_graph(
        graph.nodes,
        "test",
        [helper.make_tensor_value_info("x", kinds.FLOAT, ["n"])],
        [helper.make_tensor_value_info("y", kinds.INT64, ["n"])],
        graph.constants,
    )
    model = helper.make_model(
        made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION
    )
    session = onnxruntime.InferenceSession(model.SerializeToString())
    assert session.run(None, {"x": np.array([1, 3], np.float32)})[0].tolist() == [9, 25]
