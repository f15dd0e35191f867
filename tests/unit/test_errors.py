"""Refusals are one line: place, rule, rows, remedy; and never a value."""

import shlex

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from etips.data.tables.table_spec import TableSpec
from etips.errors import (
    DataError,
    EtipsError,
    Faults,
    FileError,
    ResourceError,
    SettingError,
    as_option,
    refuse_file,
    require,
    require_number,
    require_whole,
)


def test_a_data_refusal_names_place_rule_rows_and_remedy():
    error = DataError("log.csv, column a", "must be whole", rows=[7, 3], total=20, fix="Round it.")
    assert str(error) == (
        "log.csv, column a: must be whole; 2 of 20 rows fail, first at row 3. Round it."
    )
    assert (error.where, error.rule, error.fix) == (
        "log.csv, column a",
        "must be whole",
        "Round it.",
    )
    assert (error.n_failing, error.total, error.first_row) == (2, 20, 3)


@pytest.mark.parametrize(
    ("error", "parent", "text"),
    [
        (DataError("a", "must b"), ValueError, "a: must b."),
        (SettingError("a", "must b", fix="Do c."), ValueError, "a: must b. Do c."),
        (FileError("a", "must b", fix="Do c."), OSError, "a: must b. Do c."),
    ],
)
def test_each_refusal_is_an_etips_error_and_the_standard_one(error, parent, text):
    assert isinstance(error, EtipsError)
    assert isinstance(error, parent)
    assert error.exit_code == 2
    assert str(error) == text


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_refusal_is_one_printable_line_whatever_a_column_is_called(where, fix):
    for error in (
        DataError(where, "must be", rows=[0], total=1, fix=fix),
        SettingError(where, "must be", fix=fix),
        FileError(where, "must be", fix=fix),
    ):
        assert len(str(error).splitlines()) == 1
        assert str(error).isprintable()


def test_a_rule_must_hold_in_every_row_by_the_users_own_numbers_or_by_position():
    require("x", "must hold", np.ones(5, bool))
    require("x", "must hold", np.ones(0, bool))
    holds, rows = np.array([True, False, False, True]), np.array([40, 30, 20, 10])
    with pytest.raises(DataError, match=r"^x: must hold; 2 of 4 rows fail, first at row 1\.$"):
        require("x", "must hold", holds)
    with pytest.raises(DataError, match=r"^x: must hold; 2 of 4 rows fail, first at row 20\.$"):
        require("x", "must hold", holds, rows=rows)


@pytest.mark.parametrize("value", ["3", 3.0, None, True, [3], np.array([1, 2])])
def test_a_whole_number_of_another_kind_is_refused(value):
    with pytest.raises(SettingError, match=r"^n: must be a whole number\.$"):
        require_whole("n", value)


def test_a_whole_number_has_a_least_value_and_may_be_numpys():
    require_whole("n", np.int32(1), least=1)
    with pytest.raises(SettingError, match=r"^n: must be at least 1\.$"):
        require_whole("n", 0, least=1)


@pytest.mark.parametrize("value", ["0.5", None, True, [0.5], 1j])
def test_a_number_of_another_kind_is_refused(value):
    require_number("x", np.float32(0.5))
    with pytest.raises(SettingError, match=r"^x: must be a number\.$"):
        require_number("x", value)


def test_all_faults_are_told_in_one_line():
    faults = Faults()
    with faults.noting():
        raise DataError("log.csv, column a", "must be whole", rows=[3], total=20, fix="Round it.")
    with faults.noting():
        raise SettingError("lag", "must be 0 or 1")
    with faults.noting():
        pass
    with pytest.raises(DataError) as told:
        faults.raise_any()
    assert str(told.value) == (
        "2 faults: (1) log.csv, column a: must be whole; 1 of 20 rows fail, first at row 3. "
        "Round it; (2) lag: must be 0 or 1."
    )
    assert [type(fault) for fault in told.value.faults] == [DataError, SettingError]
    assert told.value.exit_code == 2


def test_a_single_fault_is_told_as_it_is_and_none_not_at_all():
    faults = Faults()
    faults.raise_any()
    for _ in range(2):  # the same fault met twice is one
        faults.note(SettingError("lag", "must be 0 or 1"))
    with pytest.raises(SettingError, match=r"^lag: must be 0 or 1\.$"):
        faults.raise_any()


def test_faults_of_faults_are_one_list_and_a_long_one_is_cut():
    inner = Faults()
    for number in range(30):
        inner.note(SettingError(f"s{number}", "is wrong"))
    outer = Faults()
    outer.note(FileError("x", "is gone"))
    with outer.noting():
        inner.raise_any()
    with pytest.raises(DataError, match=r"^31 faults: \(1\) x: is gone; .*; and 11 more\."):
        outer.raise_any()


def test_a_full_disk_and_a_bug_are_not_collected():
    faults = Faults()
    with pytest.raises(ResourceError), faults.noting():
        raise ResourceError("disk", "is full")
    with pytest.raises(ZeroDivisionError), faults.noting():
        raise ZeroDivisionError
    faults.raise_any()


def test_one_rule_broken_by_many_columns_is_told_once():
    faults = Faults()
    for name, rows in (("a", [3]), ("b", [1, 2]), ("c", [])):
        fix = f'Mend it, or --drop {name} (drop=["{name}"]).'
        faults.note(
            DataError(f"log.csv, column {name}", "must be finite", rows=rows, total=9, fix=fix)
        )
    faults.note(DataError("log.csv, column d", "is missing from the table"))
    with pytest.raises(DataError) as told:
        faults.raise_any()
    assert str(told.value) == (
        "4 faults: (1) log.csv, columns a (1 of 9 rows, first 3), b (2 of 9 rows, first 1), c: "
        'must be finite. Mend it, or --drop a,b,c (drop=["a", "b", "c"]); '
        "(2) log.csv, column d: is missing from the table."
    )


def test_a_remedy_is_typed_so_that_a_shell_and_a_list_leave_the_name_whole():
    assert as_option("hr", "map") == "hr,map"
    assert as_option("heart rate") == "'heart rate'"
    typed = as_option("Remark, free", "hr")
    assert shlex.split(f"--drop {typed}")[1] == '"Remark, free",hr'
    assert TableSpec.from_texts({"drop": shlex.split(typed)[0]}).drop == ("Remark, free", "hr")


def test_a_file_is_refused_for_all_that_is_wrong_in_it():
    slips = [SettingError("lag", "must be 0 or 1"), SettingError("x", "is no key", fix="See y.")]
    assert str(refuse_file("a.toml", slips[1:])) == "a.toml: x is no key. See y."
    told = "a.toml: has 2 faults: (1) lag must be 0 or 1; (2) x is no key. See y."
    assert str(refuse_file("a.toml", slips)) == told
