"""The run folder: what `etips fit` leaves, and how it is read back."""

import math
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch

from etips.choice_record import ChoiceRecord
from etips.data.storage import MANIFEST as DATA_MANIFEST
from etips.data.storage import load_trajectories
from etips.data.tables.table_spec import TableSpec, read_columns
from etips.data.trajectories import Trajectories
from etips.errors import Faults, FileError, SettingError, refuse_file
from etips.files.json_documents import canonical, finite, read_document
from etips.files.toml import format_toml, read_toml
from etips.files.writing import write_file
from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.recipes import Recipe
from etips.models.encoders.registry import AnyEncoder
from etips.policies.policy import FittedPolicy
from etips.policies.policy_files import MANIFEST, load_policy, save_policy
from etips.runs.places import (
    CHOICE,
    CONFIG,
    PATH,
    POLICY,
    PROPENSITY,
    RESULTS,
    Device,
    holds_policy,
)
from etips.version import __version__

_NUMBERS = ("translation", "risk", "std_error", "matching_factor", "effective_size", "strength")


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
    columns: TableSpec = field(default_factory=TableSpec)
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


@dataclass(frozen=True)
class RunFolder:
    """A run folder, there or to be made."""

    place: Path

    @property
    def config(self) -> Path:
        """How it was fitted."""
        return self.place / CONFIG

    @property
    def results(self) -> Path:
        """What an evaluation of it found."""
        return self.place / RESULTS

    @property
    def choice(self) -> Path:
        """What a super learner tried and kept."""
        return self.place / CHOICE

    @property
    def has_policy(self) -> bool:
        """Whether a policy is in it."""
        return holds_policy(self.place)

    def open_policy(self, *, encoder: AnyEncoder | None = None) -> FittedPolicy:
        """The policy; a folder that is itself a policy will do.

        Args:
            encoder: The torch module it was fitted with, if it was not one of ours.
        """
        inside = self.place / POLICY
        return load_policy(inside if inside.is_dir() else self.place, encoder=encoder)

    def read_config(self) -> RunConfig:
        """How it was fitted."""
        return read_config(self.config)

    def read_hold_out(self) -> float | None:
        """Share of the stays that it was kept from; None where it learned from all of them."""
        return share_held_out(self._document().get("hold_out"))

    def read_columns(self) -> TableSpec:
        """How the table that it was fitted on was read; nothing without a file."""
        return read_columns(self.config, of_run=True) if self.config.is_file() else TableSpec()

    def read_told(self) -> dict[str, object]:
        """How it was fitted, for the record; columns and versions have places of their own."""
        names = ("method", "seed", "device", "hold_out", "settings")
        document = self._document()
        return {name: document[name] for name in names if name in document}

    def read_fingerprint(self) -> str | None:
        """Fingerprint of the stays that it was fitted on; None without a file."""
        data = self._document().get("data")
        stated = data.get("fingerprint") if isinstance(data, dict) else None
        return stated if isinstance(stated, str) else None

    def _document(self) -> dict[str, object]:
        return read_toml(self.config) if self.config.is_file() else {}

    def read_path(self) -> tuple[Candidate, ...]:
        """Every candidate that was compared; none if the run keeps no path."""
        file = self.place / PATH
        document = read_document(file)
        if document is None:
            return ()
        path = document.get("path")
        if not isinstance(path, list) or not all(isinstance(entry, dict) for entry in path):
            raise FileError(str(file), "is not a translation path", fix="Remove it.")
        return tuple(map(_candidate, path))

    def write(
        self,
        policy: FittedPolicy,
        *,
        path: Sequence[Candidate],
        choice: ChoiceRecord | None = None,
        config: RunConfig,
        data: str,
        overwrite: bool,
    ) -> None:
        """Write what was fitted, the policy last; results of an earlier policy go."""
        # Already there if an earlier process was killed between writing and clearing.
        there = self.has_policy
        write_file(self.config, config.to_toml(data=data).encode())
        entries = [
            {**asdict(own), **{name: finite(getattr(own, name)) for name in _NUMBERS}}
            for own in path
        ]
        write_file(self.place / PATH, canonical({"path": entries}))
        if choice is not None and choice.is_judged:
            write_file(self.choice, canonical(choice.to_json()))
        else:
            self.choice.unlink(missing_ok=True)
        self.results.unlink(missing_ok=True)
        # The clinicians' policy, for those who want to weigh with it; not all methods fit one.
        propensity = self.place / PROPENSITY
        fitted_before = (propensity / MANIFEST).is_file()
        if policy.propensity is not None:
            save_policy(policy.imitation(), propensity, overwrite=fitted_before)
        elif fitted_before:
            shutil.rmtree(propensity)  # of the method whose run is replaced
        save_policy(policy, self.place / POLICY, overwrite=overwrite or there)


def load(folder: str | Path, *, encoder: AnyEncoder | None = None) -> Trajectories | FittedPolicy:
    """Read a folder that etips wrote; anything changed since is refused by name.

    Args:
        folder: A Trajectories folder, a policy, or a run folder with a policy in it.
        encoder: The torch module a policy was fitted with, if it was not one of ours.
    """
    folder = Path(folder)
    if (folder / DATA_MANIFEST).exists():
        return load_trajectories(folder)
    if (folder / MANIFEST).exists() or RunFolder(folder).has_policy:
        return RunFolder(folder).open_policy(encoder=encoder)
    raise FileError(str(folder), "holds neither a data set nor a policy of etips")


def read_config(path: Path) -> RunConfig:
    """What `RunConfig.to_toml` wrote, or a user by hand; what is left out has its default.

    Versions and fingerprint are for the reader of the file alone.
    """
    document = read_toml(path)
    document.pop("versions", None)
    data, device = document.pop("data", {}), document.pop("device", Device.AUTO.value)
    share, faults, made = document.pop("hold_out", None), Faults(), RunConfig(Recipe())
    with faults.noting():
        made = replace(made, columns=TableSpec.from_document(data))
    with faults.noting():
        if device not in list(Device):
            raise SettingError("device", f"must be {', '.join(Device)}")
        made = replace(made, device=Device(cast(str, device)))
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


def _candidate(entry: Mapping[str, object]) -> Candidate:
    """A candidate as a file has it; what is no number there is NaN."""
    numbers = {name: finite(entry.get(name)) for name in _NUMBERS}
    known = {name: math.nan if number is None else number for name, number in numbers.items()}
    epochs, form = entry.get("epochs"), entry.get("form")
    return Candidate(
        **known,
        chosen=entry.get("chosen") is True,
        clinicians=entry.get("clinicians") is True,
        corrected=finite(entry.get("corrected")),
        corrected_error=finite(entry.get("corrected_error")),
        epochs=epochs if isinstance(epochs, int) else None,
        form=form if isinstance(form, str) else "translated",
    )
