"""Gates in the order that ONNX has; that networks answer alike is in test_onnx_export."""

import numpy as np

from etips.explanation.onnx_networks import _gates


def test_gates_change_places_and_nothing_else():
    values = np.arange(6, dtype=np.float32)[None]
    assert _gates(values, (1, 0, 2)).tolist() == [[2, 3, 0, 1, 4, 5]]
