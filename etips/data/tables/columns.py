"""Which column of a table is what, as somebody said it, and the data that are read by it.

One field an argument of `read_table`. The options of the command line, `[data]` of a run's
config.toml and a table.toml are three spellings of the same.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Self, cast

from etips.data.alignment import align
from etips.data.decisions import MissingLoss
from etips.data.schema import Schema
from etips.data.tables.reading import read_table
from etips.data.tables.table_fields import KINDS
from etips.data.trajectories import Trajectories
from etips.data.trajectory_reader import load_trajectories
from etips.data.trajectory_writer import MANIFEST
from etips.errors import (
    EtipsError,
    Faults,
    FileError,
    SettingError,
    SeveralFaultsError,
    faults_of,
    refuse_file,
)
from etips.files.toml import read_toml

TABLE_FILE = "table.toml"
"""What `etips check` writes, and every command that reads a table takes."""

_OF_THE_SCHEMA = (
    *("static", "dose", "bins", "categorical", "features", "drop", "missing", "every", "combine"),
    *("n_actions", "actions", "lag"),
)
_USUAL: Mapping[str, object] = {"bins": 5, "missing": "carry"}
_ALTERNATIVES = {"loss": "reward", "reward": "loss", "action": "dose", "dose": "action"}
_FINGERPRINT = "fingerprint"  # of the data, which a run keeps beside the columns


@dataclass(frozen=True)
class TableColumns:
    """How a table is to be read; None where nobody said. See `read_table` for what each means.

    Args:
        stay: Which stay.
        step: Order within the stay.
        action: Logged action; several columns: their combination.
        dose: One or two columns of doses, in place of an action.
        bins: No column: classes a dose, none among them.
        loss: Loss of the logged action.
        reward: The same where more is better.
        bad: No column: values of the loss that are the harm; they count 1, others 0.
        static: Static features.
        propensity: Known propensity.
        group: The patient.
        eligible: May the step become a decision?
        negative_control: Something measured before the action, which no policy sees.
        missing_loss: No column: "drop" or "weight" an action without a loss.
        categorical: Numbers that are codes of categories.
        features: Features; every column without a part if left out.
        drop: Columns that nobody may see.
        missing: No column: "carry" or "refuse" missing values.
        every: No column: length of a step, such as 4h.
        combine: How rows of one step become one, by column.
        n_actions: No column: how many actions there are.
        actions: No columns: names of the actions.
        lag: No column: 1, a decision sees earlier steps only; 0, its own.
        decimal: No column: "," or ".", where numbers could be meant either way.
        dates: No column: "dmy" or "mdy", where dates could be meant either way.
        limits: No column: "value" reads <5 as 5 and 85+ as 85; "refuse" is the default.
        na: No column: cells that mean "missing".
    """

    stay: str | None = None
    step: str | None = None
    action: tuple[str, ...] | None = None
    dose: tuple[str, ...] | None = None
    bins: int | None = None
    loss: str | None = None
    reward: str | None = None
    bad: tuple[str, ...] | None = None
    static: tuple[str, ...] | None = None
    propensity: str | None = None
    group: str | None = None
    eligible: str | None = None
    negative_control: str | None = None
    missing_loss: str | None = None
    categorical: tuple[str, ...] | None = None
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] | None = None
    missing: str | None = None
    every: str | None = None
    combine: Mapping[str, str] | None = None
    n_actions: int | None = None
    actions: tuple[str, ...] | None = None
    lag: int | None = None
    decimal: str | None = None
    dates: str | None = None
    limits: str | None = None
    na: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        faults = Faults()
        for name, value in self.given.items():
            with faults.noting():
                object.__setattr__(self, name, KINDS[name].admit(name, value))
        faults.raise_any()

    @classmethod
    def from_texts(cls, given: Mapping[str, str | int | None]) -> Self:
        """As on a command line: lists by comma, `combine` as `column=how`."""
        parsed = {
            name: KINDS[name].parse(name, value) if isinstance(value, str) else value
            for name, value in given.items()
        }
        return cls(**parsed)  # type: ignore[arg-type]  # __post_init__ looks at each

    @classmethod
    def from_document(cls, document: object) -> Self:
        """As in a file: `[data]` of a run's config.toml, or a table.toml."""
        if not isinstance(document, Mapping):
            raise SettingError("data", "must be a table")
        given = {name: value for name, value in document.items() if name != _FINGERPRINT}
        known, faults, made = [own.name for own in fields(cls)], Faults(), cls()
        unknown = [name for name in given if name not in known]
        for name in unknown:
            meant = get_close_matches(name, known, n=1)
            fix = f"Do you mean {meant[0]}?" if meant else f"The keys are {', '.join(known)}."
            faults.note(SettingError(f"data.{name}", "is not a key", fix=fix))
        try:
            made = cls(**{name: value for name, value in given.items() if name not in unknown})
        except EtipsError as error:
            for own in faults_of(error):
                assert isinstance(own, SettingError)
                faults.note(SettingError(f"data.{own.name}", own.rule, fix=own.fix))
        faults.raise_any()
        return made

    @property
    def given(self) -> dict[str, object]:
        """What was said, by field."""
        said = {own.name: getattr(self, own.name) for own in fields(self)}
        return {name: value for name, value in said.items() if value is not None}

    @property
    def named(self) -> frozenset[str]:
        """The fields that name columns and were said."""
        return frozenset(name for name in self.given if KINDS[name].names_columns)

    @property
    def arguments(self) -> dict[str, object]:
        """What was said, as `read_table` takes it."""
        arguments = self.given
        if len(self.action or ()) == 1:
            arguments["action"] = (self.action or ())[0]
        return arguments

    def to_document(self) -> dict[str, object]:
        """What TOML holds; `from_document` reads it back."""
        return {name: KINDS[name].written(value) for name, value in self.given.items()}

    def over(self, below: "TableColumns") -> "TableColumns":
        """What was said here, and where nothing was, what `below` says."""
        given = self.given
        instead = {own: None for own, other in _ALTERNATIVES.items() if other in given}
        if "loss" in given or "reward" in given:
            instead["bad"] = None  # values of another column
        return replace(below, **{**instead, **given})  # type: ignore[arg-type]


def read_columns(path: Path, *, of_run: bool = False) -> TableColumns:
    """What a file says of a table under `[data]`; a file without that part is all about it.

    Args:
        path: A table.toml or a run's config.toml.
        of_run: Settings of a run stand in it beside `[data]`, which may be left out.
    """
    document = read_toml(path)
    try:
        return TableColumns.from_document(document.get("data", {} if of_run else document))
    except (SettingError, SeveralFaultsError) as error:
        raise refuse_file(str(path), faults_of(error)) from error


def read_data(
    data: Path,
    columns: TableColumns,
    *,
    like: Schema | None = None,
    earlier: Sequence[TableColumns] = (),
) -> Trajectories:
    """A folder of Trajectories, or a table.

    Args:
        data: The folder or the table.
        columns: What was said about it.
        like: Schema of the data a policy was fitted on: fills what was left out, `lag` too.
        earlier: What was said of those data, for each policy.
    """
    lag = columns.lag
    if like is not None:
        _require_like(columns, like, earlier)
        lag, columns = like.lag, _taken_over(columns, earlier)
    if data.is_dir():
        stays = _read_folder(data, columns, lag)
        return stays if like is None else align(stays, like)
    arguments = columns.arguments
    if like is not None:
        arguments = {k: v for k, v in arguments.items() if k not in _OF_THE_SCHEMA}
        if columns.negative_control in (*like.sequence, *like.static):
            # What a policy sees stays a feature; the evaluation finds it by its name.
            del arguments["negative_control"]
        arguments["like"] = like
    return cast(Callable[..., Trajectories], read_table)(data, **arguments)


def as_read(columns: TableColumns, stays: Trajectories) -> TableColumns:
    """What was said, with what the data themselves settled: for the record of a run."""
    weighs = stays.missing_loss == "weight"
    missing_loss = stays.missing_loss if weighs else columns.missing_loss
    return replace(columns, lag=stays.lag, missing_loss=missing_loss)


def require_log(data: Path, columns: TableColumns) -> None:
    """Refuse a table to learn from of which nobody said where actions and losses are."""
    if data.is_dir() or not data.exists():
        return
    missing = []
    if columns.action is None and columns.dose is None:
        missing.append("--action (or --dose)")
    if columns.loss is None and columns.reward is None:
        missing.append("--loss (or --reward)")
    if missing:
        fix = f"`etips check {data}` guesses which and writes them into a {TABLE_FILE}."
        raise SettingError(" and ".join(missing), "must name columns of the table", fix=fix)


def _read_folder(data: Path, columns: TableColumns, lag: int | None) -> Trajectories:
    told = columns.given.keys() - {"negative_control", "missing_loss", "lag"}
    if told:
        raise SettingError("column options", "go with a table; a folder knows its columns")
    if not (data / MANIFEST).exists():
        raise FileError(str(data), f"holds no {MANIFEST}, so it is no Trajectories folder")
    stays = load_trajectories(data)
    if columns.missing_loss is not None:
        stays = replace(stays, missing_loss=cast(MissingLoss, columns.missing_loss))
    return stays if lag is None or lag == stays.lag else stays.with_lag(lag)


def _taken_over(columns: TableColumns, earlier: Sequence[TableColumns]) -> TableColumns:
    """What a schema does not know: what becomes of missing losses, how files are written."""
    for name in ("decimal", "dates", "limits", "na"):
        habits = {getattr(own, name) for own in earlier}
        if getattr(columns, name) is None and len(habits) == 1:
            columns = replace(columns, **{name: habits.pop()})
    if columns.missing_loss is not None or not earlier:
        return columns
    told = {own.missing_loss for own in earlier}
    if len(told) > 1:
        rule = "is drop for one of the policies and weight for another"
        raise SettingError("--missing-loss", rule, fix="Say which is meant.")
    return replace(columns, missing_loss=told.pop())


def _require_like(columns: TableColumns, like: Schema, earlier: Sequence[TableColumns]) -> None:
    """Refuse what contradicts the data a policy was fitted on; it cannot read them otherwise."""
    known = {name for column in like.static for name in (column, column.partition("=")[0])}
    for name in _OF_THE_SCHEMA:
        value = getattr(columns, name)
        if value is None:
            continue
        if name == "static":
            agrees = set(value) <= known
        elif name in ("lag", "n_actions", "actions"):
            agrees = value == getattr(like, name)
        else:
            usual = _USUAL.get(name)
            agrees = all(value == (getattr(own, name) or usual) for own in earlier or [columns])
        if not agrees:
            rule = "must be as in the data the policy was fitted on"
            raise SettingError(f"--{name.replace('_', '-')}", rule, fix="Leave it out.")
