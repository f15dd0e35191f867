"""What an engine is told about several databases at once."""

from etips.cohorts.engines.layouts import Layout, Layouts

OLD = Layout("Old", {"people": {"id": "int64"}, "beds": {"n": "int64"}}, signs=frozenset({"x"}))
NEW = Layout(
    "New",
    {"people": {"id": "string", "age": "int64"}},
    folders=("a", "b"),
)
BOTH = Layouts((OLD, NEW))


def test_tables_folders_and_labels_of_all_are_looked_for():
    assert BOTH.label == "Old or New"
    assert BOTH.names == {"people", "beds", "x"}
    assert BOTH.folders == ("", "a", "b")


def test_a_column_has_the_kind_of_the_likeliest_layout_that_has_it():
    assert BOTH.columns("people") == {"id": "int64", "age": "int64"}
    assert BOTH.columns("x") == {}
