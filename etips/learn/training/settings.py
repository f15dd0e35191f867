"""How to train."""

import math
from dataclasses import dataclass
from typing import Literal, get_args

from etips.errors import SettingError, require_number, require_whole

Precision = Literal["float32", "bfloat16"]
"""Of the products while training."""


@dataclass(frozen=True)
class Settings:
    """How to train.

    Args:
        epochs: Most passes over the training stays.
        batch_size: Stays a step.
        learning_rate: Of Adam at its highest; falls to zero along half a cosine.
        weight_decay: Decoupled, on weights and not on biases.
        clip_norm: Longest gradient a network may have; longer ones are shortened; infinity for any.
        patience: Epochs without a better held-out risk after which a network stops.
        dropout: Share of the state that is hidden from the head while training.
        input_dropout: Share of the features that is hidden from the encoder while training.
        precision: Of the products while training. On a GPU bfloat16 is faster and rounds to three
            digits; weights, gradient sums and held-out risks stay in float32.
        seed: Of the batches and of dropout; the networks' own seeds are with the bundle.
    """

    epochs: int = 30
    batch_size: int = 256
    learning_rate: float = 2e-3
    weight_decay: float = 1e-4
    clip_norm: float = 1.0
    patience: int = 8
    dropout: float = 0.0
    input_dropout: float = 0.0
    precision: Precision = "float32"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "patience"):
            require_whole(name, getattr(self, name), least=1)
        require_whole("seed", self.seed, least=0)
        for name in ("learning_rate", "weight_decay", "clip_norm", "dropout", "input_dropout"):
            require_number(name, getattr(self, name))
        for name in ("dropout", "input_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise SettingError(name, "must be in [0, 1)")
        if not 0 < self.learning_rate < math.inf:
            raise SettingError("learning_rate", "must be above 0 and finite")
        if not 0 <= self.weight_decay < math.inf:
            raise SettingError("weight_decay", "must be finite and not negative")
        if not self.clip_norm > 0:
            raise SettingError("clip_norm", "must be above 0")
        if self.precision not in get_args(Precision):
            raise SettingError("precision", f"must be {' or '.join(get_args(Precision))}")
