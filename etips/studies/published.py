"""Figures of the paper (Wu et al. 2020), to stand beside ours: mean and spread of five folds."""

from collections.abc import Mapping
from typing import NamedTuple


class Figure(NamedTuple):
    """A published figure.

    Args:
        mean: Over five folds.
        spread: What the paper prints behind +/-.
    """

    mean: float
    spread: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.spread:.4f}"


TABLE1: Mapping[str, Mapping[str, Figure]] = {
    "digits-zeros": {
        "direct": Figure(0.343, 0.0001),
        "random": Figure(0.363, 0.0001),
        "ips": Figure(0.301, 0.012),
        "tips": Figure(0.899, 0.0229),
        "eips": Figure(0.319, 0.0075),
        "etips": Figure(0.923, 0.0122),
    },
    "digits-rows": {
        "direct": Figure(0.098, 0.0022),
        "random": Figure(0.103, 0.0001),
        "ips": Figure(0.020, 0.0061),
        "tips": Figure(0.931, 0.0852),
        "eips": Figure(0.016, 0.0098),
        "etips": Figure(0.953, 0.0390),
    },
}
"""Table I, accuracy on the test part, by world and method."""

TABLE1_ABOUT: Mapping[str, str] = {
    "full-supervision": "about 0.95",
    "logging": "about 0.66",
}
"""Accuracies that the text around Table I gives, for both tasks."""

TABLE2: Mapping[str, Mapping[str, Figure]] = {
    "predictive": {
        "atenp": Figure(-0.019, 0.0021),
        "ips": Figure(0.523, 0.0229),
        "dr": Figure(0.523, 0.0021),
        "matching_factor": Figure(1.034, 0.0391),
    },
    "direct": {"atenp": Figure(0.032, 0.0001)},
    "most-frequent": {"atenp": Figure(-0.023, 0.0001)},
    "random": {
        "atenp": Figure(-0.023, 0.0001),
        "ips": Figure(0.125, 0.0001),
        "dr": Figure(0.478, 0.0026),
        "matching_factor": Figure(0.243, 0.0001),
    },
    "eips": {
        "atenp": Figure(-0.025, 0.1009),
        "ips": Figure(0.009, 0.0019),
        "dr": Figure(0.504, 0.0071),
        "matching_factor": Figure(0.018, 0.0029),
    },
    "etips": {
        "atenp": Figure(-0.143, 0.0099),
        "ips": Figure(0.169, 0.0160),
        "dr": Figure(0.471, 0.0060),
        "matching_factor": Figure(0.438, 0.0279),
    },
}
"""Table II, MIMIC-III, by method and column; the paper gives no more for deterministic policies."""
