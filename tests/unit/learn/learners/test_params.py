"""Settings by name, those within settings too."""

from dataclasses import dataclass, field

import pytest

from etips.errors import SettingError
from etips.learn.learners.learner import get_params, set_params


@dataclass(frozen=True)
class Inner:
    depth: int = 1


@dataclass(frozen=True)
class Middle:
    inner: Inner = field(default_factory=Inner)
    width: int = 2


@dataclass(kw_only=True, eq=False)
class Outer:
    middle: Middle = field(default_factory=Middle)
    kind: type = Inner


def test_settings_are_listed_with_those_inside_them():
    assert set(get_params(Outer(), deep=False)) == {"middle", "kind"}
    names = {"middle", "middle__inner", "middle__inner__depth", "middle__width", "kind"}
    assert set(get_params(Outer())) == names
    assert get_params(Outer())["middle__inner__depth"] == 1


def test_a_setting_inside_is_changed_and_its_neighbours_stay():
    outer = Outer(middle=Middle(width=7))
    assert set_params(outer, middle__inner__depth=5) is outer
    assert outer.middle == Middle(Inner(5), 7)


def test_what_is_inside_is_set_after_what_it_is_in():
    outer = set_params(Outer(), middle__inner__depth=5, middle=Middle(width=9))
    assert outer.middle == Middle(Inner(5), 9)


def test_a_setting_that_is_none_is_refused_and_nothing_changes():
    outer = Outer()
    with pytest.raises(SettingError, match=r"^depth: is not a setting of Outer"):
        set_params(outer, middle__width=3, depth=5)
    assert outer.middle.width == 2
