"""Arguments that commands share: data, what is said of its columns, and methods."""

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from etips.data.tables.table_spec import LISTS, SAID, TABLE_FILE, WHOLE, TableSpec, read_columns
from etips.errors import Faults, SettingError, SeveralFaultsError, faults_of

DataArgument = Annotated[
    Path, typer.Argument(help="A table (CSV, Parquet, ...), or a Trajectories folder.")
]
NAMES = (
    *("auto", "etips", "tips", "eips", "ips", "direct", "direct-stay", "doubly-robust"),
    *("beta-ips", "log-sum-exp", "log-smoothing", "exponential-smoothing", "weighted-likelihood"),
    *("pessimistic", "predictive"),
    *("q-learning", "owl", "rwl", "poem", "norm-poem", "bandit-net", "ai-clinician"),
    *("random", "most-frequent"),
)
"""Methods as the help pages list them, without torch; the catalogue has the last word."""

USUAL = NAMES[0]

MethodOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help=f"Learner: {', '.join(NAMES)}. {USUAL} if left out, which we recommend: models of "
        "every kind, stacked, that lean to the clinicians; etips is the paper's "
        "(docs/method/learning.md).",
    ),
]

_TABLE_HELP = f"File that says what the options below do, as `etips check` writes {TABLE_FILE}."
_PANDAS = "pandas"


def require_method_name(name: str | None) -> None:
    """Refuse a method that is not there; the catalogue is only opened for a name not listed."""
    if name is None or name in NAMES:
        return
    from etips.learn.learners.catalogue import METHODS  # noqa: PLC0415  # with torch

    if name not in METHODS:
        raise SettingError("--method", f"must be one of {', '.join(METHODS)}")


def takes_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of `TableSpec` in place of its `columns`.

    And `--table`, a file that says the same; options go over it. An option of the command's own
    name keeps its meaning: `--stay` is a stay to `explain`, and `--cluster`, the patient to
    `evaluate`, other machines to a command that can use some.
    """
    signature = inspect.signature(command, eval_str=True)
    names = [name for name in SAID if name not in signature.parameters]

    def option(name: str, annotation: object) -> inspect.Parameter:
        keyword = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(name, keyword, default=None, annotation=annotation)

    options = [option("table", Annotated[Path | None, typer.Option(help=_TABLE_HELP)])]
    for name in names:
        text = TableSpec.model_fields[name].description or ""
        if name in LISTS or name == "combine":
            text = f"{text} Comma-separated."
        least, most = WHOLE.get(name, (None, None))
        both = name == "group" and "cluster" not in signature.parameters
        spelt = ("--group", "--cluster") if both else ()
        kind = int if name in WHOLE else str
        setting = typer.Option(*spelt, help=text, min=least, max=most)
        options.append(option(name, Annotated[kind | None, setting]))

    @wraps(command)
    def call(**given: Any) -> None:  # noqa: ANN401  # whatever the command takes
        start_arrow()
        columns = said_of_table(given.pop("table"), {name: given.pop(name) for name in names})
        command(columns=columns, **given)

    parameters: list[inspect.Parameter] = []
    for name, own in signature.parameters.items():
        keyword = inspect.Parameter.KEYWORD_ONLY
        parameters += options if name == "columns" else [own.replace(kind=keyword)]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {own.name: own.annotation for own in parameters}
    return call


def said_of_table(table: Path | None, given: Mapping[str, str | int | None]) -> TableSpec:
    """What the options, by the names of their fields, say of a table, over what the file says."""
    try:
        columns = TableSpec.from_texts(given)
    except (SettingError, SeveralFaultsError) as error:
        faults = Faults()
        for own in faults_of(error):
            assert isinstance(own, SettingError)
            option = f"--{own.name.replace('_', '-')}"
            faults.note(SettingError(option, own.rule.replace('"', ""), fix=own.fix))
        raise faults.all() from None
    return columns if table is None else columns.over(read_columns(table))


class _Hidden:
    """An importer that knows of no pandas."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == _PANDAS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def start_arrow() -> None:
    """Let pyarrow look for pandas while there is none; leave it alone where somebody uses it.

    It would import pandas, a third of a second, to ask whether a number is one. Once it has looked
    and found none it does not look again; what is handed a frame later still works.
    """
    if _PANDAS in sys.modules:
        return
    sys.meta_path.insert(0, _Hidden)
    try:
        pa.array([0]).to_numpy()
    finally:
        sys.meta_path.remove(_Hidden)
