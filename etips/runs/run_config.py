"""All that `etips fit` was told, kept with the run and read back."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import cast, get_args

import numpy as np
import torch

from etips.data.decisions import MissingLoss
from etips.data.tables.columns import TableColumns
from etips.errors import FileError, SettingError
from etips.files.toml import read_toml
from etips.files.toml_writer import format_toml
from etips.learn.learners.recipes import Recipe
from etips.version import __version__


class Device(StrEnum):
    """Where to train."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


@dataclass(frozen=True)
class RunConfig:
    """All that `etips fit` was told, but for the places it reads and writes.

    Args:
        recipe: Method, settings and seed.
        columns: Which column of a table is what; `lag` is that of the data.
        device: Where to train.
    """

    recipe: Recipe
    columns: TableColumns = field(default_factory=TableColumns)
    device: Device = Device.AUTO

    def to_toml(self, *, data: str) -> str:
        """As text, with the versions it ran with and the fingerprint of its data."""
        columns: dict[str, object] = dict(self.columns.named)
        if self.columns.static:
            columns["static"] = self.columns.static_names
        if self.columns.missing_loss is not None:
            columns["missing_loss"] = self.columns.missing_loss
        if self.columns.lag is not None:
            columns["lag"] = self.columns.lag
        versions = {
            "etips": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        }
        document = self.recipe.to_document()
        settings = document.pop("settings", {})
        head = {**document, "device": self.device.value, "settings": settings}
        return format_toml({**head, "data": {**columns, "fingerprint": data}, "versions": versions})


def read_config(path: Path) -> RunConfig:
    """What `RunConfig.to_toml` wrote, or somebody by hand; what is left out has its default.

    Versions and fingerprint are for the reader of the file: they bind nobody.
    """
    document = read_toml(path)
    document.pop("versions", None)
    try:
        columns = _columns(document.pop("data", {}))
        device = _device(document.pop("device", Device.AUTO.value))
        return RunConfig(Recipe.from_document(document), columns, device)
    except SettingError as error:
        raise FileError(str(path), f"{error.name} {error.rule}") from error


def _device(name: object) -> Device:
    if name not in list(Device):
        raise SettingError("device", f"must be {', '.join(Device)}")
    return Device(cast(str, name))


def _columns(table: object) -> TableColumns:
    if not isinstance(table, Mapping):
        raise SettingError("data", "must be a table")
    given = {name: value for name, value in table.items() if name != "fingerprint"}
    for name, value in given.items():
        _check_column(name, value)
    static = given.pop("static", [])
    return TableColumns(**given, static=",".join(static) or None)


def _check_column(name: str, value: object) -> None:
    if name not in {own.name for own in fields(TableColumns)}:
        raise SettingError(f"data.{name}", "is not a key")
    if name == "lag":
        holds, rule = type(value) is int and value in (0, 1), "must be 0 or 1"
    elif name == "missing_loss":
        holds, rule = value in get_args(MissingLoss), 'must be "drop" or "weight"'
    elif name == "static":
        holds = isinstance(value, list) and all(isinstance(column, str) for column in value)
        rule = "must be a list of columns"
    else:
        holds, rule = isinstance(value, str), "must be a text"
    if not holds:
        raise SettingError(f"data.{name}", rule)
