"""Refusals: one line with the place, the rule, the rows and the remedy; never a patient's value."""

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from typing import SupportsIndex, cast

import numpy as np
from numpy.typing import NDArray

MOST_SEEDS = 2**32
"""Seeds are whole numbers below this."""

_SHELL = ' "$&|;<>()*?[]#!`\\'  # what a shell would not leave as it is
_MOST_TOLD = 20  # faults of one input; a line of more helps nobody


def as_option(*names: str) -> str:
    """Columns as the value of an option on the command line: in quotes where they need some."""
    text = ",".join(f'"{name}"' if "," in name else name for name in names)
    return f"'{text}'" if any(sign in text for sign in _SHELL) else text


class EtipsError(Exception):
    """Anything etips refuses. The command line turns it into one line and `exit_code`."""

    exit_code = 2


class DataError(EtipsError, ValueError):
    """Unusable input. Says where and which rule; never shows a patient's value.

    Args:
        where: The place: a file, a column, an argument.
        rule: What must hold there.
        rows: Failing rows, counted from 0 as given; none when the rule is about the whole.
        total: How many rows were looked at.
        fix: What the user can do about it.
    """

    def __init__(
        self,
        where: str,
        rule: str,
        *,
        rows: Sequence[int] | NDArray[np.int64] = (),
        total: int = 0,
        fix: str = "",
    ) -> None:
        self.where, self.rule, self.fix = where, rule, fix
        self.n_failing, self.total = len(rows), total
        self.first_row = int(min(rows)) if len(rows) else None
        count = ""
        if self.first_row is not None:
            count = f"; {self.n_failing} of {total} rows fail, first at row {self.first_row}"
        self._found = f"{rule}{count}"
        super().__init__(_one_line(f"{where}: {rule}{count}. {fix}"))

    def without_options(self) -> "DataError":
        """The same without "Or --option", which mends a feature but no column with a part."""
        fix = self.fix.partition(" Or --")[0]
        return DataError(self.where, self._found, fix=fix)


class SettingError(EtipsError, ValueError):
    """An argument or option outside its limits."""

    def __init__(self, name: str, rule: str, *, fix: str = "") -> None:
        self.name, self.rule, self.fix = name, rule, fix
        super().__init__(_one_line(f"{name}: {rule}. {fix}"))


class FileError(EtipsError, OSError):
    """A file or folder that cannot be used: missing, damaged, in the way."""

    def __init__(self, where: str, rule: str, *, fix: str = "") -> None:
        self.where, self.rule, self.fix = where, rule, fix
        super().__init__(_one_line(f"{where}: {rule}. {fix}"))


class ResourceError(FileError):
    """The machine, not the input, is at fault: the disk is full or failing."""

    exit_code = 3


class SeveralFaultsError(DataError):
    """All that is wrong with one input, at least two refusals, in one line."""

    def __init__(self, faults: Sequence[EtipsError]) -> None:
        self.faults = tuple(faults)
        super().__init__(f"{len(faults)} faults", "")
        alike: dict[tuple[str, ...], list[EtipsError]] = {}
        for fault in faults:
            alike.setdefault(_likeness(fault), []).append(fault)
        groups = list(alike.values())
        told = [f"({at}) {_tell(group)}" for at, group in enumerate(groups[:_MOST_TOLD], 1)]
        more = sum(len(group) for group in groups[_MOST_TOLD:])
        rest = f"; and {more} more" if more else ""
        self.args = (_one_line(f"{len(faults)} faults: {'; '.join(told)}{rest}."),)


class Faults:
    """Collects refusals, so that whoever asks hears all of them at once.

    A machine at fault (`ResourceError`) and anything that is no refusal are not collected.
    """

    def __init__(self) -> None:
        self.noted: list[EtipsError] = []

    def note(self, error: EtipsError) -> None:
        """Take a refusal up; one that is there already is not taken twice."""
        for fault in faults_of(error):
            if str(fault) not in {str(other) for other in self.noted}:
                self.noted.append(fault)

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Take up a refusal raised inside and go on after the block."""
        try:
            yield
        except ResourceError:
            raise
        except EtipsError as error:
            self.note(error)

    def raise_any(self) -> None:
        """Refuse if anything was taken up: a single refusal as it is, several in one line."""
        if self.noted:
            raise self.all() from None

    def all(self) -> EtipsError:
        """What was taken up, at least one refusal, as one."""
        return self.noted[0] if len(self.noted) == 1 else SeveralFaultsError(self.noted)


def faults_of(error: EtipsError) -> tuple[EtipsError, ...]:
    """The refusals that one refusal holds: several, or itself."""
    return error.faults if isinstance(error, SeveralFaultsError) else (error,)


def refuse_file(where: str, faults: Sequence[EtipsError]) -> FileError:
    """A refusal of a file for all settings in it that are wrong, one at least."""
    told = [
        (f"{own.name} {own.rule}", own.fix) if isinstance(own, SettingError) else (str(own), "")
        for own in faults
    ]
    if len(told) == 1:
        return FileError(where, told[0][0], fix=told[0][1])
    lines = [f"({at}) {rule}. {fix}".strip().rstrip(".") for at, (rule, fix) in enumerate(told, 1)]
    return FileError(where, f"has {len(told)} faults: {'; '.join(lines)}")


def _column(fault: EtipsError) -> str:
    return fault.where.partition(", column ")[2] if isinstance(fault, DataError) else ""


def _likeness(fault: EtipsError) -> tuple[str, ...]:
    """Faults of one likeness break the same rule in other columns of the same table."""
    name = _column(fault)
    if not name or not isinstance(fault, DataError):
        return (str(fault),)
    return fault.where.partition(", column ")[0], fault.rule, _fix_of(fault.fix, name, "\0", "\0")


def _fix_of(fix: str, name: str, names: str, listed: str) -> str:
    """A remedy of one column as one of several: names by comma, and as a list."""
    for option in ("--drop", "--categorical"):
        fix = fix.replace(f"{option} {as_option(name)}", f"{option} {names}")
    return fix.replace(f'["{name}"]', f"[{listed}]")


def _tell(group: Sequence[EtipsError]) -> str:
    """Faults of one likeness in one part of the line."""
    first, names = group[0], [_column(fault) for fault in group]
    if len(group) == 1 or not isinstance(first, DataError):
        return str(first).rstrip(".")
    counted = list(names)
    for at, fault in enumerate(group):
        if isinstance(fault, DataError) and fault.first_row is not None:
            rows = f"{fault.n_failing} of {fault.total} rows, first {fault.first_row}"
            counted[at] = f"{names[at]} ({rows})"
    more = len(group) - _MOST_TOLD
    shown = ", ".join([*counted[:_MOST_TOLD], *([f"and {more} more"] if more > 0 else [])])
    place, listed = first.where.partition(", column ")[0], ", ".join(f'"{name}"' for name in names)
    fix = _fix_of(first.fix, names[0], as_option(*names), listed)
    return f"{place}, columns {shown}: {first.rule}. {fix}".rstrip(". ")


def require(
    where: str,
    rule: str,
    holds: NDArray[np.bool_],
    *,
    rows: NDArray[np.int64] | None = None,
    fix: str = "",
) -> None:
    """Refuse, in the words of a `DataError`, unless `rule` holds in every row.

    Write `holds` so that NaN fails it: `(p > 0) & (p <= 1)`, not `~(p <= 0)`. `rows` are those of
    the user's own input; positions if left out.
    """
    if holds.all():
        return
    failing = np.flatnonzero(~holds)
    numbers = failing if rows is None else np.sort(rows[failing])
    raise DataError(where, rule, rows=numbers, total=holds.size, fix=fix)


def require_whole(name: str, value: object, *, least: int | None = None) -> None:
    """Refuse a setting that is not a whole number, or below `least`; NumPy's are welcome."""
    try:
        whole = operator.index(cast(SupportsIndex, value))
    except TypeError:
        raise SettingError(name, "must be a whole number") from None
    if isinstance(value, bool):
        raise SettingError(name, "must be a whole number")
    if least is not None and whole < least:
        raise SettingError(name, f"must be at least {least}")


def require_seed(seed: object) -> None:
    """Refuse a seed that is none."""
    require_whole("seed", seed)
    if not 0 <= cast(int, seed) < MOST_SEEDS:
        raise SettingError("seed", f"must be in 0..{MOST_SEEDS - 1}")


def require_number(name: str, value: object) -> None:
    """Refuse a setting that is not a number; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SettingError(name, "must be a number")


def _one_line(text: str) -> str:
    """Column and file names are the user's own and may hold anything; a refusal is one line."""
    return "".join(c if c.isprintable() else " " for c in text).strip()
