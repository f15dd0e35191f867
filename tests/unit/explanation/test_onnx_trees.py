"""Cuts as float32; that trees answer alike is in test_onnx_export."""

import numpy as np

from etips.explanation.onnx_trees import round_down


def test_a_rounded_cut_parts_float32_values_as_the_cut_does():
    rng = np.random.default_rng(0)
    for cut in [*rng.normal(size=200), 0.1, -0.1, 38.3, 0.0]:
        near = np.float32(cut)
        around = [near, *(np.nextafter(near, np.float32(s * np.inf)) for s in (-1, 1))]
        for value in around:
            assert (float(value) <= cut) == (value <= np.float32(round_down(cut)))
