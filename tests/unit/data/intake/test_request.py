"""What was asked for of a table."""

import inspect

import pytest

from etips.data.intake.request import ARGUMENTS, Request
from etips.data.tables.reading import read_table
from etips.errors import SettingError


def test_every_argument_of_read_table_has_a_field_with_the_same_default():
    parameters = inspect.signature(read_table).parameters
    assert tuple(parameters)[1:] == ARGUMENTS
    given = {name: parameters[name].default for name in ARGUMENTS}
    assert Request.of(**given) == Request()


def test_one_name_stands_for_a_list_of_one():
    assert Request.of(action="dose", static="age").treatment == ("dose",)
    assert Request.of(static="age").static == ("age",)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"loss": "l", "reward": "r"}, r"^loss, reward: name one of them\.$"),
        ({"action": "a", "dose": "d"}, r"^action, dose: name one of them\."),
        ({"missing": "zero"}, r'^missing: must be "refuse" or "carry"\.$'),
        ({"lag": 2}, r"^lag: must be 0 or 1\.$"),
    ],
)
def test_what_no_table_could_mend_is_refused(more, message):
    with pytest.raises(SettingError, match=message):
        Request.of(**more)
