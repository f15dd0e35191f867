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
from etips.checks.guessing import Guess, Suspect, part_columns
from etips.data.recipe import ColumnKind
from etips.data.tables.table_spec import TABLE_FILE, TableSpec
from etips.disclosure import LEAST_PEOPLE, are_few
from etips.errors import FileError
from etips.files.toml import format_toml
from etips.files.writing import write_file


def format_table_file(
    columns: TableSpec, guesses: Sequence[Guess], suspects: Sequence[Suspect], data: str
) -> str:
    """The text of a table.toml, commented."""
    why = {own.field: own.reason for own in guesses}
    lines = [
        f"# How etips reads {_one_line(data)}. Written by `etips check`.",
        "# Lines marked GUESSED were not said by anybody: look at them before you use the file.",
        f"# Then: etips fit {_one_line(data)} --table {TABLE_FILE} --hold-out 0.3 --out run",
        "",
        "[data]",
    ]
    tables = []
    for name, value in columns.to_document().items():
        words = f"# {TableSpec.model_fields[name].description}"
        if name in why:
            words += f" GUESSED: {_one_line(why[name])}"
        text = format_toml({name: value}).strip()
        if isinstance(value, Mapping):  # a table of its own stands behind all plain keys
            tables += ["", words, text.replace(f"[{name}]", f"[data.{name}]")]
        else:
            lines += [words, text]
    left_out = "drop" in why or "features" in why
    kept = [own for own in suspects if not (own.leave_out and left_out)]
    lines += [f"# {_one_line(own.column)}: {_one_line(own.reason)}. See drop." for own in kept]
    return "\n".join([*lines, *tables]) + "\n"


def _one_line(text: str) -> str:
    """Names are the user's own and may hold anything; a comment is one line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


MOST_SHOWN_LEVELS = 6

_SHAPES: Mapping[str, str] = {
    "number": "number",
    "yes_no": "yes/no",
    "text": "category",
    "time": "time",
    "mixed": "not readable",
    "other": "not readable",
}
_KINDS: Mapping[str, str] = {
    "number": "number",
    "yes_no": "yes/no",
    "category": "category",
    "hours": "time",
    "years": "time",
    "age": "time",
    "duration": "time",
}
KINDS = ("number", "yes/no", "category", "time", "not readable")
"""In the order in which they are told."""


@dataclass(frozen=True)
class FeatureSummary:
    """A feature of a table."""

    name: str
    kind: str
    static: bool = False
    missing: int | None = 0
    n_levels: int | None = None
    levels: tuple[str, ...] = ()


def feature_names(facts: Sequence[ColumnFacts], columns: TableSpec) -> tuple[str, ...]:
    """The columns that would be features, in the order of the table."""
    static = set(columns.static)
    taken = set(part_columns(columns)) - static
    names = [own.name for own in facts if own.name not in taken]
    names = [name for name in names if not _matches(name, columns.drop)]
    if not columns.features:
        return tuple(names)
    return tuple(name for name in names if name in static or _matches(name, columns.features))


def summarize_features(
    facts: Sequence[ColumnFacts],
    columns: TableSpec,
    kinds: Mapping[str, ColumnKind] | None = None,
) -> tuple[FeatureSummary, ...]:
    """Every feature."""
    wanted = set(feature_names(facts, columns))
    static, codes = set(columns.static), set(columns.categorical)
    return tuple(
        _summary(own, (kinds or {}).get(own.name), own.name in static, own.name in codes)
        for own in facts
        if own.name in wanted
    )


def _summary(own: ColumnFacts, read: ColumnKind | None, static: bool, code: bool) -> FeatureSummary:
    kind = _SHAPES[own.shape] if read is None else _KINDS.get(read.kind, read.kind)
    if code:
        kind = "category"
    category = kind == "category"
    common = own.n_rows >= LEAST_PEOPLE * max(len(own.levels), 1)
    shown = category and len(own.levels) <= MOST_SHOWN_LEVELS and common
    return FeatureSummary(
        own.name,
        kind,
        static,
        _percent(own),
        own.n_distinct if category else None,
        own.levels if shown else (),
    )


def _percent(own: ColumnFacts) -> int | None:
    known = own.n_rows - own.n_missing
    if not own.n_missing:
        return 0
    if are_few(own.n_missing) or are_few(known):
        return None
    return round(100 * own.n_missing / max(own.n_rows, 1))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(name == own or fnmatchcase(name, own) for own in patterns)


PAGE = 80
"""Letters of a line that goes to no terminal."""
_SHOWN_SUSPECTS = 8
_SHOWN_ACTIONS = 30
_LISTED = 6  # columns of a list that are named


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
        name: Of the table.
        n_rows: Its rows.
        n_columns: Its columns.
        columns: Who plays which part.
        guesses: What of that nobody said.
        suspects: Columns that a policy had better not see.
        features: What it would see.
        faults: What is refused, a line each.
        questions: What somebody who knows the data should answer.
        remarks: What would be done on the way.
        n_stays: Stays.
        n_people: Patients, where they are named.
        n_decisions: Decisions.
        lag: Whether a decision sees its own step (0) or only earlier ones (1).
        lost_to_lag: Decisions that have no history under that lag.
        mean_loss: Of the decisions.
        actions: The actions.
        contrasts: What could be told of some of them, the surest first.
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
        console = Console(file=StringIO(), width=PAGE, highlight=False)
        print_check(self, console)
        assert isinstance(console.file, StringIO)
        return console.file.getvalue().rstrip()

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


def require_free(path: Path, *, overwrite: bool) -> None:
    """Refuse to write where no folder is, and over a file unless somebody asked for it."""
    if not path.parent.is_dir():
        raise FileError(str(path.parent), "must be a folder that exists")
    if path.exists() and not overwrite:
        fix = "Use it with --table, choose another place with --out, or --overwrite."
        raise FileError(str(path), "exists already", fix=fix)


def print_check(found: TableCheck, console: Console) -> None:
    """Print what was found, what needs an eye first."""
    rows = _counted(found.n_rows, "rows")
    console.print(Text(f"{found.name}: {rows}, {found.n_columns:,} columns", style="bold"))
    if found.faults:
        _heading(console, f"Faults ({len(found.faults)})", "bold red")
        _bullets(console, found.faults)
    _print_suspects(console, found)
    if found.questions:
        _heading(console, f"Questions ({len(found.questions)})", "bold yellow")
        _bullets(console, found.questions)
    _print_roles(console, found)
    _print_counts(console, found)
    _print_features(console, found.features)
    if found.remarks:
        _heading(console, "On the way")
        _bullets(console, found.remarks)
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
    lines = []
    if found.guesses:
        fields = list(dict.fromkeys(own.field for own in found.guesses))
        lines.append(f"Look at what was guessed ({', '.join(fields)}); it is marked in {place}.")
    if found.faults:
        lines.append("Mend the faults, or name the options that they tell of; then check again:")
        lines.append(
            f"etips check {quote(data)} --table {quote(place)} --out {quote(place)} --overwrite"
        )
        return lines
    lines.append(f"etips fit {quote(data)} --table {quote(place)} --hold-out 0.3 --out run")
    lines.append(f"etips evaluate run {quote(data)}")
    lines.append("etips report run --out report.html")
    return lines


def _heading(console: Console, text: str, style: str = "bold") -> None:
    console.print()
    console.print(Text(text, style=style))


def _bullets(console: Console, lines: Sequence[str]) -> None:
    table = _plain_table()
    for line in lines:
        table.add_row(Text(" -"), Text(line))
    console.print(table)


def _plain_table(*, columns: int = 2) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
    for _ in range(columns):
        table.add_column(overflow="fold")
    return table


def _print_suspects(console: Console, found: TableCheck) -> None:
    """By reason, since a table as wide as a trial's has dozens for the same one."""
    if not found.suspects:
        return
    _heading(console, f"Columns to look at ({len(found.suspects)})", "bold yellow")
    by_reason: dict[tuple[str, bool], list[str]] = {}
    for own in found.suspects:
        by_reason.setdefault((own.reason, own.leave_out), []).append(own.column)
    left_out = any(own.field in ("drop", "features") for own in found.guesses)
    table = _plain_table()
    for (reason, unsafe), names in by_reason.items():
        told = "left out" if unsafe and left_out else "kept"
        said = reason if len(names) == 1 else _plural(reason)
        table.add_row(Text(" -"), Text(f"{_listed(names, _SHOWN_SUSPECTS)}: {said} ({told})"))
    console.print(table)


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
    words = [_counted(found.n_stays, "stays")]
    if found.columns.group is not None:
        words.append(_counted(found.n_people, "patients"))
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
    for name in ("decisions", "share", "patients" if found.columns.group else "stays"):
        table.add_column(name, justify="right")
    for own in found.actions[:_SHOWN_ACTIONS]:
        share = "-"
        if own.decisions is not None and found.n_decisions:
            share = f"{own.decisions / found.n_decisions:.1%}"
        table.add_row(Text(f"  {own.name}"), _count(own.decisions), share, _count(own.people))
    console.print(table)
    if len(found.actions) > _SHOWN_ACTIONS:
        console.print(f"  and {len(found.actions) - _SHOWN_ACTIONS} more actions")


def _print_features(console: Console, features: Sequence[FeatureSummary]) -> None:
    """By kind; static ones are told apart, and gaps and levels stand beside the name."""
    _heading(console, f"Features ({len(features)})")
    table = _plain_table()
    for kind in KINDS:
        for static in (False, True):
            own = [f for f in features if f.kind == kind and f.static == static]
            if own:
                label = f"  {kind}{', static' if static else ''} ({len(own)})"
                table.add_row(Text(label), Text(", ".join(map(_feature, own))))
    console.print(table)


def _feature(own: FeatureSummary) -> str:
    words = []
    if own.n_levels is not None:
        words.append("|".join(own.levels) if own.levels else f"{own.n_levels:,} levels")
    if own.missing is None:
        words.append("few or nearly all missing")
    elif own.missing:
        words.append(f"{own.missing} % missing")
    return f"{own.name} ({', '.join(words)})" if words else own.name


def _print_contrasts(console: Console, found: TableCheck) -> None:
    if not found.contrasts:
        return
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


def _plural(reason: str) -> str:
    """What is said of one column, of several."""
    verb, _, rest = reason.partition(" ")
    verbs = {"is": "are", "holds": "hold", "stands": "stand", "has": "have"}
    return f"{verbs.get(verb, verb)} {rest}"


def _counted(count: int | None, what: str) -> str:
    """How many there are, or that this would tell of few people."""
    return f"{count:,} {what}" if count is not None else f"{what} (number not shown)"


def _count(count: int | None) -> str:
    return "not shown" if count is None else f"{count:,}"
