"""Settings of the training."""

import pytest

from etips.errors import SettingError
from etips.learn.settings import Settings


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
    ],
)
def test_settings_outside_their_limits_are_refused(name, value):
    with pytest.raises(SettingError, match=f"^{name}: must be"):
        Settings(**{name: value})
