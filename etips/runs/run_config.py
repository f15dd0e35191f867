"""All that `etips fit` was told, kept with the run and read back."""

import platform
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch

from etips.data.tables.columns import TableColumns
from etips.errors import Faults, SettingError, refuse_file
from etips.files.toml import read_toml
from etips.files.toml_writer import format_toml
from etips.learn.learners.recipes import Recipe
from etips.runs.device import Device as Device
from etips.version import __version__


@dataclass(frozen=True)
class RunConfig:
    """All that `etips fit` was told, but for the places it reads and writes.

    Args:
        recipe: Method, settings and seed.
        columns: Which column of a table is what; `lag` is that of the data.
        device: Where to train.
        hold_out: Share of the stays that nothing was learned from; see `held_out`.
    """

    recipe: Recipe
    columns: TableColumns = field(default_factory=TableColumns)
    device: Device = Device.AUTO
    hold_out: float | None = None

    def to_toml(self, *, data: str) -> str:
        """As text, with the versions it ran with and the fingerprint of its data."""
        versions = {
            "etips": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        }
        document = self.recipe.to_document()
        settings = document.pop("settings", {})
        apart = {} if self.hold_out is None else {"hold_out": self.hold_out}
        head = {**document, "device": self.device.value, **apart, "settings": settings}
        columns = {**self.columns.to_document(), "fingerprint": data}
        return format_toml({**head, "data": columns, "versions": versions})


def read_config(path: Path) -> RunConfig:
    """What `RunConfig.to_toml` wrote, or somebody by hand; what is left out has its default.

    Versions and fingerprint are for the reader of the file: they bind nobody.
    """
    document = read_toml(path)
    document.pop("versions", None)
    data, device = document.pop("data", {}), document.pop("device", Device.AUTO.value)
    share, faults, made = document.pop("hold_out", None), Faults(), RunConfig(Recipe())
    with faults.noting():
        made = replace(made, columns=TableColumns.from_document(data))
    with faults.noting():
        made = replace(made, device=_device(device))
    with faults.noting():
        made = replace(made, hold_out=share_held_out(share))
    with faults.noting():
        made = replace(made, recipe=Recipe.from_document(document))
    if faults.noted:
        raise refuse_file(str(path), faults.noted)
    return made


def share_held_out(share: object) -> float | None:
    """Share of the stays that a run was kept from, as its file has it."""
    if share is None:
        return None
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise SettingError("hold_out", "must be a share between 0 and 1")
    return float(share)


def _device(name: object) -> Device:
    if name not in list(Device):
        raise SettingError("device", f"must be {', '.join(Device)}")
    return Device(cast(str, name))
