"""How networks are trained: a setting for all stages, or for one."""

import pytest

from etips.errors import SettingError
from etips.learn.fitting.stages import STAGES, Training


def test_a_seed_reaches_every_stage_and_leaves_the_rest():
    plain = Training(n_folds=3)
    seeded = plain.with_seed(7)
    assert {getattr(seeded, stage).seed for stage in STAGES} == {7}
    assert seeded.with_seed(0) == plain
    assert seeded.n_folds == 3


@pytest.mark.parametrize(
    ("setting", "rule"),
    [
        ({"n_folds": 0}, "n_folds: must be at least 1"),
        ({"n_folds": 2.5}, "n_folds: must be a whole number"),
        ({"earlier_actions": "yes"}, "earlier_actions: must be true or false"),
        ({"calibrate": None}, "calibrate: must be true or false"),
        ({"policy": {"epochs": 3}}, r"policy: must be Settings\(...\)"),
    ],
)
def test_what_no_network_could_be_trained_with_is_refused(setting, rule):
    with pytest.raises(SettingError, match=f"^{rule}"):
        Training(**setting).check()
