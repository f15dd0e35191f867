"""Runs, rules in SQL and data as commands take them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
import typer

from etips.data.splitting import held_out
from etips.data.tables.reading import read_data, require_log
from etips.data.tables.table_spec import TableSpec, read_columns
from etips.data.trajectories import Trajectories
from etips.disclosure import part_told
from etips.errors import DataError, FileError, SettingError
from etips.files.toml import read_toml
from etips.notes import note
from etips.policies.policy_manifest import read_schema
from etips.policies.sql_rules import SqlRule
from etips.runs.places import CONFIG, POLICY

if TYPE_CHECKING:  # torch: a table that policies cannot be held against is refused without it
    from etips.policies.policy import FittedPolicy
    from etips.results.followed_policies import Policy
    from etips.runs.folder import RunFolder

RunArgument = Annotated[Path, typer.Argument(help="Run folder that `etips fit` wrote.")]
RunsArgument = Annotated[
    list[Path], typer.Argument(help="Run folders, if any, then the data: RUN [RUN ...] DATA.")
]
SeenFlag = Annotated[
    bool, typer.Option("--allow-seen", help="Take stays that a policy learned from; marked so.")
]
RuleOption = Annotated[
    list[str] | None,
    typer.Option(
        help="NAME=SQL over the columns, such as low=\"case when map < 65 then 'vasopressor' "
        "else 'none' end\"; null leaves it to the clinicians. May be repeated."
    ),
]
RulesOption = Annotated[
    Path | None, typer.Option(help='TOML file of rules: NAME = "SQL", one a line.')
]


def read_like(runs: Sequence[Path], data: Path, columns: TableSpec) -> Trajectories:
    """The stays of a table, or of a folder, in the schema of the first run or policy.

    What the options leave out of its columns is as it was for the runs.
    """
    schemas = [read_schema(run / POLICY if (run / POLICY).is_dir() else run) for run in runs]
    configs = [run / CONFIG for run in runs]
    earlier = [read_columns(own, of_run=True) if own.is_file() else TableSpec() for own in configs]
    known = earlier if any(own.is_file() for own in configs) else []
    return read_data(data, columns, like=schemas[0] if schemas else None, earlier=known)


@dataclass(frozen=True, eq=False)
class AskedPolicies:
    """Policies and data as a command line names them, by the names that results give them.

    Policies are opened once the table is read: that takes torch, and a bad table none.
    """

    runs: Mapping[str, Path]
    rules: Mapping[str, SqlRule]
    data: Path

    @classmethod
    def of(
        cls,
        paths: Sequence[Path],
        rules: Sequence[str] | None,
        file: Path | None,
        *,
        least: int = 1,
    ) -> Self:
        """Runs and data by their places, rules by their options; `least` policies in all."""
        written = read_rules(rules or (), file)
        if len(paths) - 1 + len(written) < least:
            rule = "must be RUN [RUN ...] DATA, or DATA with --rule"
            raise SettingError("arguments", rule)
        *runs, data = paths
        names = [run.resolve().name for run in runs]
        if len(set(names)) < len(names):
            names = [str(run) for run in runs]
        for name in written:
            if name in names:
                raise SettingError(f"--rule {name}", "must have a name that no run has")
        return cls(dict(zip(names, runs, strict=True)), written, data)

    @cached_property
    def folders(self) -> "Mapping[str, RunFolder]":
        """The run folders."""
        if not self.runs:
            return {}
        from etips.runs.folder import RunFolder  # noqa: PLC0415  # torch

        return {name: RunFolder(run) for name, run in self.runs.items()}

    @cached_property
    def fitted(self) -> "Mapping[str, FittedPolicy]":
        """The policies of the runs."""
        return {name: run.open_policy() for name, run in self.folders.items()}

    @property
    def policies(self) -> "dict[str, Policy]":
        """All of them, runs first."""
        return {**self.fitted, **self.rules}

    @property
    def settings(self) -> dict[str, object]:
        """What is on record of each: the settings of a run, the words of a rule."""
        runs = {name: told for name, run in self.folders.items() if (told := run.read_told())}
        return {**runs, **{name: {"rule": rule.text} for name, rule in self.rules.items()}}

    def read(self, columns: TableSpec, *, allow_seen: bool = False) -> Trajectories:
        """The stays, read as those of the first run were, or as the options say; rules must fit.

        Of a table that a run learned from, those that it was kept from, unless all are allowed.
        """
        if not self.runs:
            require_log(self.data, columns)
        stays = read_like(list(self.runs.values()), self.data, columns)
        for rule in self.rules.values():
            rule.check(stays.schema)
        keep = np.ones(stays.n_stays, bool)
        if allow_seen:
            return stays
        for name, run in self.folders.items():
            share, seen = run.read_hold_out(), self.fitted[name].seen
            if share is None or seen is None:
                continue
            known = seen.overlap(stays)
            if known.n_stays or known.n_patients:
                keep &= held_out(stays, share)
        if keep.all():
            return stays
        if not keep.any():
            raise DataError("data", "hold no stay that the runs were kept from (--hold-out)")
        n = part_told(int(keep.sum()), stays.n_stays, "stays")
        note(f"{n} are judged: those that no run learned from (`etips fit --hold-out`)")
        return stays.subset(keep)


def read_rules(given: Sequence[str], file: Path | None) -> dict[str, SqlRule]:
    """The rules by name: those of a TOML file, under [rules] or at its top, then NAME=SQL each."""
    written: list[tuple[str, str]] = []
    if file is not None:
        document = read_toml(file)
        own = document.get("rules", document)
        entries = own.items() if isinstance(own, Mapping) else ()
        if not entries or not all(isinstance(value, str) for _, value in entries):
            rule = 'must hold rules as NAME = "expression", under [rules] or alone'
            raise FileError(str(file), rule)
        written += entries
    for text in given:
        name, equals, expression = text.partition("=")
        name = name.strip()
        begins = name.lower().startswith("case ")  # an expression without a name
        if not equals or begins or not re.fullmatch(r"[^'\"()<>!]{1,60}", name):
            fix = (
                "For example --rule low=\"case when map < 65 then 'vasopressor' else 'none' end\"."
            )
            raise SettingError("--rule", "must be NAME=EXPRESSION", fix=fix)
        written.append((name, expression))
    rules: dict[str, SqlRule] = {}
    for name, expression in written:
        if name in rules:
            raise SettingError(f"--rule {name}", "must be given once")
        rules[name] = SqlRule(name, expression)
    return rules
