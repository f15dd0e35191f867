"""What the package knows of a database."""

from dataclasses import dataclass

import pytest

from etips.cohorts.database import Profile
from etips.cohorts.sepsis3 import rules
from etips.errors import SettingError


@dataclass(frozen=True)
class Reading:
    careful: bool = False


PROFILE = Profile("mine", rules.PAPER, Reading())


def test_a_setting_is_changed_in_the_part_it_belongs_to():
    changed = PROFILE.changed(careful=True, half_open_steps=True)
    assert changed.reading.careful
    assert changed.rules.half_open_steps
    assert not PROFILE.reading.careful


def test_settings_of_both_parts_stand_side_by_side():
    settings = PROFILE.changed(careful=True).settings()
    assert (settings["name"], settings["careful"], settings["n_steps"]) == ("mine", True, 20)


def test_a_setting_outside_its_limits_is_refused_and_an_unknown_one_is_a_mistake():
    with pytest.raises(SettingError, match=r"^n_steps: "):
        PROFILE.changed(n_steps=1)
    with pytest.raises(TypeError):
        PROFILE.changed(carefull=True)
