"""Settings of the rules: limits, what the profiles turn on, names of the variables."""

from dataclasses import replace

import pytest

from etips.cohorts.sepsis3.rules import (
    CLEAN,
    PAPER,
    STEP_HOURS,
    SWITCHES,
    Window,
    steps_of_hours,
)
from etips.cohorts.sepsis3.variables import TABLE_COLUMNS, step_names
from etips.errors import SettingError


def test_clean_turns_every_switch_on_and_paper_none():
    assert len(SWITCHES) >= 20
    assert not any(getattr(PAPER, name) for name in SWITCHES)
    assert all(getattr(CLEAN, name) for name in SWITCHES)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("n_steps", 2),
        ("stays_per_block", 0),
        ("test_share", 1.0),
        ("test_share", float("nan")),
        ("step_hours", 3),
    ],
)
def test_settings_outside_their_limits_are_refused(setting, value):
    with pytest.raises(SettingError, match=f"^{setting}: "):
        replace(PAPER, **{setting: value})


def test_an_empty_window_is_refused():
    with pytest.raises(SettingError, match="window"):
        Window(-5, 5)


@pytest.mark.parametrize("rules", [PAPER, CLEAN])
@pytest.mark.parametrize("hours", STEP_HOURS)
def test_a_stay_has_the_same_hours_whatever_a_step_is(rules, hours):
    changed = replace(rules, **steps_of_hours(hours))
    assert changed.most_steps * changed.step_seconds == rules.n_steps * 4 * 3600
    assert changed.half_open_steps or hours == 4  # most rows are charted on the hour
    if hours == 4:
        assert changed == rules


@pytest.mark.parametrize("hours", [1, 2])
def test_volumes_of_a_step_are_called_after_its_length(hours):
    assert step_names(hours) == {
        "input_4hourly": f"input_{hours}hourly",
        "output_4hourly": f"output_{hours}hourly",
    }
    assert set(step_names(hours)) <= set(TABLE_COLUMNS)
