"""The run folder: what `etips fit` leaves, and who may write where."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from etips.data.tables.columns import TableColumns, read_columns
from etips.files.toml import read_toml
from etips.files.writing import write_file
from etips.learn.fitting.candidates import Candidate
from etips.models.encoders.registry import AnyEncoder
from etips.policies.policy import FittedPolicy
from etips.policies.policy_files import MANIFEST, load_policy, save_policy
from etips.runs.file_names import CONFIG, LOG, PATH, POLICY, PROPENSITY, RESULTS
from etips.runs.path_file import read_path, write_path
from etips.runs.room import holds_policy
from etips.runs.run_config import RunConfig, read_config, share_held_out

_TOLD = ("method", "seed", "device", "hold_out", "settings")


@dataclass(frozen=True)
class RunFolder:
    """A run folder.

    Args:
        place: Where it is, or will be.
    """

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
    def log(self) -> Path:
        """What happened while it was fitted."""
        return self.place / LOG

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
        document = read_toml(self.config) if self.config.is_file() else {}
        return share_held_out(document.get("hold_out"))

    def read_columns(self) -> TableColumns:
        """How the table that it was fitted on was read; nothing where no file says so."""
        return read_columns(self.config, of_run=True) if self.config.is_file() else TableColumns()

    def read_told(self) -> dict[str, object]:
        """How it was fitted, for the record; columns and versions have places of their own."""
        document = read_toml(self.config) if self.config.is_file() else {}
        return {name: document[name] for name in _TOLD if name in document}

    def read_fingerprint(self) -> str | None:
        """Fingerprint of the stays that it was fitted on; None where no file says so."""
        document = read_toml(self.config) if self.config.is_file() else {}
        data = document.get("data")
        told = data.get("fingerprint") if isinstance(data, dict) else None
        return told if isinstance(told, str) else None

    def read_path(self) -> tuple[Candidate, ...]:
        """Every candidate that was compared; none if the run keeps no path."""
        return read_path(self.place / PATH)

    def write(
        self,
        policy: FittedPolicy,
        *,
        path: Sequence[Candidate],
        config: RunConfig,
        data: str,
        overwrite: bool,
    ) -> None:
        """Write what was fitted, the policy last; results of an earlier policy go.

        Args:
            policy: What was learned.
            path: Every candidate that was compared.
            config: How it was fitted.
            data: Fingerprint of the stays.
            overwrite: Replace an earlier policy.
        """
        # Already there if an earlier process was killed between writing and clearing.
        there = self.has_policy
        write_file(self.config, config.to_toml(data=data).encode())
        write_path(self.place / PATH, path)
        self.results.unlink(missing_ok=True)
        self._write_propensity(policy)
        save_policy(policy, self.place / POLICY, overwrite=overwrite or there)

    def _write_propensity(self, policy: FittedPolicy) -> None:
        """The clinicians' policy, for whoever wants to weigh with it; not all methods fit one."""
        folder = self.place / PROPENSITY
        there = (folder / MANIFEST).is_file()
        if policy.propensity is not None:
            save_policy(policy.imitation(), folder, overwrite=there)
        elif there:
            shutil.rmtree(folder)  # of the method whose run is replaced
