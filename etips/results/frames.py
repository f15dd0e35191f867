"""Rows as a data frame: pandas where it is installed, polars otherwise."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from etips.errors import SettingError

Library = Literal["pandas", "polars"]


def make_frame(
    rows: Sequence[Mapping[str, object]], names: Sequence[str], library: Library | None = None
) -> Any:  # noqa: ANN401  # a foreign object
    """A frame of rows that have the same columns.

    Args:
        rows: One mapping a row.
        names: Of the columns.
        library: Whose frame; left out, that of pandas where it is installed, else that of polars,
            which always is.
    """
    if library not in (None, "pandas", "polars"):
        raise SettingError("library", "must be pandas or polars")
    if library is None:
        library = "pandas" if find_spec("pandas") is not None else "polars"
    if library == "pandas" and find_spec("pandas") is None:
        raise SettingError("library", "must be polars: pandas is not installed")
    columns = {name: [row[name] for row in rows] for name in names}
    return import_module(library).DataFrame(columns)
