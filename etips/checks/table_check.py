"""What a check of a table found: its figures, its words at eighty columns, its table.toml."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from io import StringIO
from pathlib import Path
from shlex import quote

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from etips.checks.column_facts import ColumnFacts
from etips.checks.guessing import Guess, part_columns
from etips.checks.suspects import Suspect
from etips.data.recipe import ColumnKind
from etips.data.tables.table_spec import TABLE_FILE, TableSpec
from etips.disclosure import LEAST_PEOPLE, are_few
from etips.errors import FileError
from etips.files.toml import format_toml
from etips.files.writing import write_file

PAGE = 80
"""Letters of a line that goes to no terminal."""

_MOST_LEVELS = 6  # that are named
_SHOWN_SUSPECTS, _SHOWN_ACTIONS, _LISTED = 8, 30, 6
_KINDS: Mapping[str, str] = {
    "number": "number",
    "yes_no": "yes/no",
    "text": "category",
    "category": "category",
    **dict.fromkeys(("time", "hours", "years", "age", "duration"), "time"),
    **dict.fromkeys(("mixed", "other"), "not readable"),
}
"""What a shape or a kind of a column is called, in the order in which they are listed."""


@dataclass(frozen=True)
class FeatureSummary:
    """A feature of a table; `missing` is in percent, None where it would tell of few people."""

    name: str
    kind: str
    static: bool = False
    missing: int | None = 0
    n_levels: int | None = None
    levels: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = []
        if self.n_levels is not None:
            words.append("|".join(self.levels) if self.levels else f"{self.n_levels:,} levels")
        if self.missing is None:
            words.append("few or nearly all missing")
        elif self.missing:
            words.append(f"{self.missing} % missing")
        return f"{self.name} ({', '.join(words)})" if words else self.name


def feature_names(facts: Sequence[ColumnFacts], columns: TableSpec) -> tuple[str, ...]:
    """The columns that would be features, in the order of the table."""

    def matches(name: str, patterns: Sequence[str]) -> bool:
        return any(name == own or fnmatchcase(name, own) for own in patterns)

    taken = set(part_columns(columns)) - set(columns.static)
    wanted = (*columns.features, *columns.static) if columns.features else ("*",)
    names = [own.name for own in facts if own.name not in taken]
    return tuple(n for n in names if matches(n, wanted) and not matches(n, columns.drop))


def summarize_features(
    facts: Sequence[ColumnFacts],
    columns: TableSpec,
    kinds: Mapping[str, ColumnKind] | None = None,
) -> tuple[FeatureSummary, ...]:
    """Every feature, by how it was read where it was."""
    wanted, summaries = set(feature_names(facts, columns)), []
    for own in facts:
        if own.name not in wanted:
            continue
        read = (kinds or {}).get(own.name)
        kind = _KINDS[own.shape if read is None else read.kind]
        category = kind == "category" or own.name in columns.categorical
        common = own.n_rows >= LEAST_PEOPLE * max(len(own.levels), 1)
        known = own.n_rows - own.n_missing
        few = bool(own.n_missing) and (are_few(own.n_missing) or are_few(known))
        summaries.append(
            FeatureSummary(
                own.name,
                "category" if category else kind,
                own.name in columns.static,
                None if few else round(100 * own.n_missing / max(own.n_rows, 1)),
                own.n_distinct if category else None,
                own.levels if category and common and len(own.levels) <= _MOST_LEVELS else (),
            )
        )
    return tuple(summaries)


@dataclass(frozen=True)
class ActionCount:
    """How often an action was taken; None where that would tell of few people."""

    name: str
    decisions: int | None
    people: int | None


@dataclass(frozen=True)
class Contrast:
    """The smallest difference of risk that four of five such logs would show."""

    action: str
    difference: float
    effective_n: float


@dataclass(frozen=True)
class TableCheck:
    """What a table would be read as. A count of fewer than eleven people is None.

    Args:
        columns: Who plays which part.
        guesses: What of that was not said.
        suspects: Columns that a policy had better not see.
        features: What it would see.
        faults: What is refused, a line each.
        questions: What somebody who knows the data should answer.
        remarks: What would be done on the way.
        n_people: Patients, where they are named.
        lag: Whether a decision sees its own step (0) or only earlier ones (1).
        lost_to_lag: Decisions that have no history under that lag.
        mean_loss: Of the decisions.
        contrasts: What could be told of some of the actions, the surest first.
    """

    name: str
    n_rows: int | None
    n_columns: int
    columns: TableSpec
    guesses: tuple[Guess, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    features: tuple[FeatureSummary, ...] = ()
    faults: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    n_stays: int | None = None
    n_people: int | None = None
    n_decisions: int | None = None
    lag: int | None = None
    lost_to_lag: int | None = None
    mean_loss: float | None = None
    actions: tuple[ActionCount, ...] = ()
    contrasts: tuple[Contrast, ...] = ()

    def __str__(self) -> str:
        text = StringIO()
        print_check(self, Console(file=text, width=PAGE, highlight=False))
        return text.getvalue().rstrip()

    def to_json(self) -> dict[str, object]:
        """A JSON-ready copy."""
        return {**asdict(self), "columns": self.columns.to_document()}

    def to_toml(self, data: str = "DATA") -> str:
        """A table.toml: what every command takes with --table."""
        return format_table_file(self.columns, self.guesses, self.suspects, data)

    def save(self, path: str | Path, *, data: str = "DATA", overwrite: bool = False) -> None:
        """Write a table.toml."""
        require_free(Path(path), overwrite=overwrite)
        write_file(Path(path), self.to_toml(data).encode())


def format_table_file(
    columns: TableSpec, guesses: Sequence[Guess], suspects: Sequence[Suspect], data: str
) -> str:
    """The text of a table.toml, commented."""

    def one_line(text: str) -> str:  # names are the user's own and may hold anything
        return "".join(letter if letter.isprintable() else " " for letter in text)

    why = {own.field: own.reason for own in guesses}
    lines = [
        f"# How etips reads {one_line(data)}. Written by `etips check`.",
        "# Lines marked GUESSED were not said by anybody: look at them before you use the file.",
        f"# Then: etips fit {one_line(data)} --table {TABLE_FILE} --hold-out 0.3 --out run",
        "",
        "[data]",
    ]
    tables = []
    for name, value in columns.to_document().items():
        words = f"# {TableSpec.model_fields[name].description}"
        if name in why:
            words += f" GUESSED: {one_line(why[name])}"
        text = format_toml({name: value}).strip()
        if isinstance(value, Mapping):  # a table of its own stands behind all plain keys
            tables += ["", words, text.replace(f"[{name}]", f"[data.{name}]")]
        else:
            lines += [words, text]
    left_out = "drop" in why or "features" in why
    kept = [own for own in suspects if not (own.leave_out and left_out)]
    lines += [f"# {one_line(own.column)}: {one_line(own.reason)}. See drop." for own in kept]
    return "\n".join([*lines, *tables]) + "\n"


def require_free(path: Path, *, overwrite: bool) -> None:
    """Refuse to write where no folder is, and over a file unless that was asked for."""
    if not path.parent.is_dir():
        raise FileError(str(path.parent), "must be a folder that exists")
    if path.exists() and not overwrite:
        fix = "Use it with --table, choose another place with --out, or --overwrite."
        raise FileError(str(path), "exists already", fix=fix)


def print_check(found: TableCheck, console: Console) -> None:
    """Print what was found, what needs an eye first."""
    rows = _counted(found.n_rows, "rows")
    console.print(Text(f"{found.name}: {rows}, {found.n_columns:,} columns", style="bold"))
    _section(console, f"Faults ({len(found.faults)})", found.faults, "bold red")
    suspects = f"Columns to look at ({len(found.suspects)})"
    _section(console, suspects, _suspect_lines(found), "bold yellow")
    _section(console, f"Questions ({len(found.questions)})", found.questions, "bold yellow")
    _print_roles(console, found)
    _print_counts(console, found)
    _heading(console, f"Features ({len(found.features)})")
    table = _plain_table()
    for kind in dict.fromkeys(_KINDS.values()):
        for static in (False, True):
            own = [str(f) for f in found.features if f.kind == kind and f.static == static]
            if own:
                label = f"  {kind}{', static' if static else ''} ({len(own)})"
                table.add_row(Text(label), Text(", ".join(own)))
    console.print(table)
    _section(console, "On the way", found.remarks, "bold")
    if found.contrasts:
        _print_contrasts(console, found)


def print_next(found: TableCheck, console: Console, *, data: str, place: str) -> None:
    """Print what to do now."""
    _heading(console, "Next")
    for line in next_lines(found, data=data, place=place):
        if line.startswith("etips "):
            console.print(Text(f"  {line}"), soft_wrap=True)  # to be copied
        else:
            console.print(Padding(Text(line), (0, 0, 0, 2)))


def next_lines(found: TableCheck, *, data: str, place: str) -> list[str]:
    """What to do now, the command to type last."""
    lines, table = [], f"{quote(data)} --table {quote(place)}"
    if found.guesses:
        fields = ", ".join(dict.fromkeys(own.field for own in found.guesses))
        lines.append(f"Look at what was guessed ({fields}); it is marked in {place}.")
    if found.faults:
        lines.append("Mend the faults, or name the options that they tell of; then check again:")
        return [*lines, f"etips check {table} --out {quote(place)} --overwrite"]
    lines.append(f"etips fit {table} --hold-out 0.3 --out run")
    return [*lines, f"etips evaluate run {quote(data)}", "etips report run --out report.html"]


def _heading(console: Console, text: str, style: str = "bold") -> None:
    console.print()
    console.print(Text(text, style=style))


def _section(console: Console, title: str, lines: Sequence[str], style: str) -> None:
    if not lines:
        return
    _heading(console, title, style)
    table = _plain_table()
    for line in lines:
        table.add_row(Text(" -"), Text(line))
    console.print(table)


def _plain_table(*, columns: int = 2) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
    for _ in range(columns):
        table.add_column(overflow="fold")
    return table


def _suspect_lines(found: TableCheck) -> list[str]:
    """By reason, since a table as wide as a trial's has dozens for the same one."""
    by_reason: dict[tuple[str, bool], list[str]] = {}
    for own in found.suspects:
        by_reason.setdefault((own.reason, own.leave_out), []).append(own.column)
    left_out = any(own.field in ("drop", "features") for own in found.guesses)
    plurals = {"is": "are", "holds": "hold", "stands": "stand", "has": "have"}
    lines = []
    for (reason, unsafe), names in by_reason.items():
        if len(names) > 1:
            verb, _, rest = reason.partition(" ")
            reason = f"{plurals.get(verb, verb)} {rest}"
        fate = "left out" if unsafe and left_out else "kept"
        lines.append(f"{_listed(names, _SHOWN_SUSPECTS)}: {reason} ({fate})")
    return lines


def _print_roles(console: Console, found: TableCheck) -> None:
    _heading(console, "Read as")
    guessed = {own.field: own for own in found.guesses}
    table = _plain_table(columns=3)
    for name, value in found.columns.given.items():
        words = _listed(value, _LISTED) if isinstance(value, tuple) else str(value)
        if isinstance(value, dict):
            words = ", ".join(f"{column}={how}" for column, how in value.items())
        origin = Text("as said")
        if name in guessed:
            origin = Text(f"guessed: {guessed[name].reason}", style="yellow")
        table.add_row(Text(f"  {name}"), Text(words), origin)
    if found.columns.stay is None:
        table.add_row(Text("  stay"), Text("every row"), Text("no column: one row a patient"))
    console.print(table)


def _print_counts(console: Console, found: TableCheck) -> None:
    _heading(console, "Counts")
    grouped = found.columns.group is not None
    words = [_counted(found.n_stays, "stays")]
    words += [_counted(found.n_people, "patients")] if grouped else []
    if found.actions:
        words.append(_counted(found.n_decisions, "decisions"))
        if found.lag:
            words.append(_counted(found.lost_to_lag, f"more lost to lag {found.lag}"))
    if found.mean_loss is not None:
        words.append(f"mean loss {found.mean_loss:.4g}")
    console.print(Padding(Text(", ".join(words)), (0, 0, 0, 2)))
    if not found.actions:
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("  action", overflow="fold")
    for name in ("decisions", "share", "patients" if grouped else "stays"):
        table.add_column(name, justify="right")
    for own in found.actions[:_SHOWN_ACTIONS]:
        decisions, people = (
            "not shown" if count is None else f"{count:,}" for count in (own.decisions, own.people)
        )
        share = "-"
        if own.decisions is not None and found.n_decisions:
            share = f"{own.decisions / found.n_decisions:.1%}"
        table.add_row(Text(f"  {own.name}"), decisions, share, people)
    console.print(table)
    if len(found.actions) > _SHOWN_ACTIONS:
        console.print(f"  and {len(found.actions) - _SHOWN_ACTIONS} more actions")


def _print_contrasts(console: Console, found: TableCheck) -> None:
    _heading(console, "What such a log could show")
    lead = (
        "Smallest true difference of risk to what was done that four of five such logs find "
        "(level 5 %), for what was done most:"
    )
    console.print(Padding(Text(lead), (0, 0, 0, 2)))
    table = _plain_table(columns=3)
    for own in found.contrasts:
        worth = f"worth {own.effective_n:,.0f} decisions"
        size = Text(f"{own.difference:.3g}", justify="right")
        table.add_row(Text(f"    always {own.action}"), size, Text(worth))
    console.print(table)


def _listed(names: Sequence[str], most: int) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def _counted(count: int | None, what: str) -> str:
    """How many there are, or that this would tell of few people."""
    return f"{count:,} {what}" if count is not None else f"{what} (number not shown)"
