"""Which fields of a dataclass a text can set, and what each takes."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pytest

from etips.learn.learners.recipes import SettingKind, flatten_tables, kinds_of


@dataclass
class Odd:
    """One field of every sort."""

    count: int = 1
    share: float = 0.5
    maybe: float | None = None
    flag: bool = True
    word: str = ""
    pick: Literal["a", "b"] = "a"
    grid: Sequence[float] = ()
    names: Sequence[str] = ()
    thing: object = None
    table: dict[str, int] = field(default_factory=dict)
    either: int | str = 0
    seed: int = 0


def test_plain_fields_are_settings_and_objects_are_not():
    assert kinds_of(Odd) == {
        "count": SettingKind(int),
        "share": SettingKind(float),
        "maybe": SettingKind(float),
        "flag": SettingKind(bool),
        "word": SettingKind(str),
        "pick": SettingKind(str, ("a", "b")),
        "grid": SettingKind(list),
        "names": SettingKind(tuple),
    }


@pytest.mark.parametrize(
    ("kind", "values", "others"),
    [
        (int, [0, -3], [1.0, True, "1", None, [1]]),
        (float, [0, 0.5], [True, "0.5", None, [0.5]]),
        (bool, [True, False], [1, 0.0, "true"]),
        (str, ["a"], [1, True, None]),
        (list, [[0.5, 1], (0.5,), []], [0.5, ["a"], [True], "0.5"]),
    ],
)
def test_a_whole_number_is_a_number_and_true_is_neither(kind, values, others):
    assert all(SettingKind(kind).admits(value) for value in values)
    assert not any(SettingKind(kind).admits(value) for value in others)


def test_every_kind_has_words():
    assert SettingKind(int).words == "a whole number"
    assert SettingKind(list).words == "a list of numbers"


def test_what_stands_in_a_table_gets_its_name_before_a_dot():
    nested = {"hidden": 8, "policy": {"epochs": 3, "dropout": 0.1}}
    assert flatten_tables(nested) == {"hidden": 8, "policy.epochs": 3, "policy.dropout": 0.1}
