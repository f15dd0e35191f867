"""The `etips` command."""

import ast
import gc
import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from etips.cli.console import INTERRUPTED, refusals
from etips.machine import own_process
from etips.version import __version__

COMMANDS = (
    *("demo", "cohort", "validate", "simulate", "check", "fit", "tune", "recommend", "evaluate"),
    *("compare", "explain", "export", "reproduce", "bench", "report", "serve"),
)
"""Every command, in the order of the help page; each is a function in the module of its name."""

_ELSEWHERE = {"validate": "cohort"}


class _Group(TyperGroup):
    """Imports a command when it is called: some bring torch, some a query engine.

    The help page shows the first line of each one's docstring and imports none.
    """

    _lists = False

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002  # typer's own click
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        self._lists = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._lists = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002
        if cmd_name not in COMMANDS:
            return None
        module = _ELSEWHERE.get(cmd_name, cmd_name)
        if self._lists:
            return TyperCommand(cmd_name, help=_first_line(module, cmd_name))
        command = getattr(import_module(f"etips.cli.{module}"), cmd_name)
        own = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
        own.command(cmd_name)(refusing(command))
        return get_command(own)


def _first_line(module: str, command: str) -> str:
    tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text(encoding="utf-8"))
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    found = next(node for node in functions if node.name == command)
    return (ast.get_docstring(found) or "").partition("\n")[0]


def refusing(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose refusals are one line each."""

    @wraps(command)
    def call(*args: object, **options: object) -> None:
        with refusals(f"etips {command.__name__}"):
            command(*args, **options)

    return call


# Rich tracebacks print local variables, and a local variable may be a patient.
app = typer.Typer(
    name="etips",
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"etips {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Learn and evaluate treatment policies from logged decisions, and report on them.

    For research, not for clinical use.
    """


def main() -> None:
    """Run the command line; a slip in the options is refused in one line like any other."""
    own_process()
    try:
        code = app(prog_name="etips", standalone_mode=False)
    except (typer.Abort, KeyboardInterrupt):  # before a command took over, or at a question
        typer.echo("etips: interrupted", err=True)
        sys.exit(INTERRUPTED)
    except Exception as error:
        context = getattr(error, "ctx", None)
        if context is None or not hasattr(error, "format_message"):
            raise  # a bug
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(error.format_message(), nl=False)  # empty where rich has shown it already
        else:
            text = " ".join(error.format_message().split())
            typer.echo(f"{context.command_path}: {text}", err=True)
        sys.exit(2)
    finally:
        if "duckdb" not in sys.modules:  # which prints what a last search would have let go
            gc.freeze()  # or all that was imported is looked through once more at the end, 0.4 s
    sys.exit(code if isinstance(code, int) else 0)
