"""Rows as frames, of pandas or of polars."""

import polars as pl
import pytest

from etips.errors import SettingError
from etips.results import frames
from etips.results.frames import make_frame

ROWS = ({"policy": "p", "risk": 0.5}, {"policy": "q", "risk": None})
NAMES = ("policy", "risk")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_has_a_row_for_each_row_and_the_columns_in_order(library):
    pytest.importorskip(library)
    frame = make_frame(ROWS, NAMES, library)
    assert type(frame).__module__.partition(".")[0] == library
    assert list(frame.columns) == ["policy", "risk"]
    assert frame.shape == (2, 2)
    assert frame["risk"][0] == 0.5
    assert make_frame((), NAMES, library).shape == (0, 2)


def test_pandas_comes_first_where_it_is_installed_and_polars_where_it_is_not(monkeypatch):
    pandas = pytest.importorskip("pandas")
    assert isinstance(make_frame(ROWS, NAMES), pandas.DataFrame)
    monkeypatch.setattr(frames, "find_spec", lambda name: None)
    assert isinstance(make_frame(ROWS, NAMES), pl.DataFrame)
    with pytest.raises(SettingError, match=r"^library: must be polars: pandas is not installed"):
        make_frame(ROWS, NAMES, "pandas")


def test_any_other_library_is_refused():
    with pytest.raises(SettingError, match=r"^library: must be pandas or polars"):
        make_frame(ROWS, NAMES, "arrow")
