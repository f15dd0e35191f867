"""Settings of the training."""

import numpy as np
import pytest

from etips.errors import SettingError
from etips.learn.training.settings import Settings


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epochs", 0),
        ("batch_size", 0),
        ("patience", 0),
        ("dropout", 1.0),
        ("dropout", float("nan")),
        ("learning_rate", 0.0),
        ("learning_rate", float("nan")),
        ("learning_rate", float("inf")),
        ("weight_decay", -1e-4),
        ("weight_decay", float("nan")),
        ("weight_decay", float("inf")),
        ("precision", "float16"),
        ("clip_norm", 0.0),
        ("clip_norm", -1.0),
        ("clip_norm", float("nan")),
        ("seed", -1),
    ],
)
def test_settings_outside_their_limits_are_refused(name, value):
    with pytest.raises(SettingError, match=f"^{name}: must be"):
        Settings(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("epochs", "3", "whole number"),
        ("epochs", 2.5, "whole number"),
        ("batch_size", 16.0, "whole number"),
        ("patience", None, "whole number"),
        ("patience", True, "whole number"),
        ("seed", "x", "whole number"),
        ("learning_rate", "0.1", "number"),
        ("weight_decay", None, "number"),
        ("clip_norm", [1.0], "number"),
        ("dropout", False, "number"),
        ("input_dropout", "no", "number"),
    ],
)
def test_settings_of_another_kind_are_refused_in_words(name, value, kind):
    with pytest.raises(SettingError, match=rf"^{name}: must be a {kind}\.$"):
        Settings(**{name: value})


def test_numbers_of_numpy_are_numbers():
    made = Settings(epochs=np.int64(3), dropout=np.float32(0.5), learning_rate=1)
    assert (made.epochs, made.dropout) == (3, 0.5)
