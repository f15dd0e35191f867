"""What may be said of a table under each name, typed on a command line or kept in a file."""

import pytest

from etips.data.tables.table_fields import KINDS
from etips.errors import SettingError


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("stay", " id ", "id"),
        ("static", "age, weight,", ["age", "weight"]),
        ("static", "", []),
        ("drop", '"Remark, free", age', ["Remark, free", "age"]),
        ("drop", 'cuff 5" wide,age', ['cuff 5" wide', "age"]),
        ("action", "RXASP,RXHEP", ["RXASP", "RXHEP"]),
        ("combine", "urine = sum,map=mean", {"urine": "sum", "map": "mean"}),
        ("bins", "4", 4),
    ],
)
def test_texts_become_values(name, text, value):
    assert KINDS[name].parse(name, text) == value


@pytest.mark.parametrize("text", ["urine", "urine=", "=sum", "urine=sum,map"])
def test_pairs_need_a_column_and_a_word(text):
    with pytest.raises(SettingError, match=r"^combine: must be column=how, by comma"):
        KINDS["combine"].parse("combine", text)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("stay", 3, "must be a text"),
        ("static", "age", "must be a list of columns"),
        ("static", [1], "must be a list of columns"),
        ("actions", "none", "must be a list of names"),
        ("action", 3, "must be a text or a list of columns"),
        ("missing", "guess", 'must be "carry" or "refuse"'),
        ("missing_loss", 1, 'must be "drop" or "weight"'),
        ("lag", 2, "must be 0 or 1"),
        ("lag", True, "must be 0 or 1"),
        ("bins", 1, "must be a whole number of 2 or more"),
        ("bins", "four", "must be a whole number of 2 or more"),
        ("combine", "urine=sum", "must be a table of columns, each with a text"),
        ("combine", {"urine": 3}, "must be a table of columns, each with a text"),
    ],
)
def test_a_value_of_another_kind_is_refused(name, value, rule):
    with pytest.raises(SettingError) as refusal:
        KINDS[name].admit(name, value)
    assert str(refusal.value) == f"{name}: {rule}."


def test_one_column_is_kept_as_one_of_several():
    assert KINDS["action"].admit("action", "dose") == ("dose",)
    assert KINDS["action"].written(("dose",)) == "dose"
    assert KINDS["action"].written(("a", "b")) == ["a", "b"]
    assert KINDS["static"].written(("age",)) == ["age"]
