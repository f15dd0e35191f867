"""The `etips` command."""

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from etips.machine import keep_freed
from etips.version import __version__

COMMANDS = {
    "demo": "demo",
    "cohort": "cohort",
    "validate": "cohort",
    "simulate": "simulate",
    "fit": "fit",
    "tune": "tune",
    "recommend": "recommend",
    "evaluate": "evaluate",
    "reproduce": "reproduce",
    "report": "report",
}
"""Module of each command, in the order of the help page."""

TRAIN = ("demo", "fit", "tune", "reproduce")
"""Commands that train networks."""


class _Group(TyperGroup):
    """Imports a command when it is called: some bring torch, some a query engine."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002  # typer's own click
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401, ARG002
        if cmd_name not in COMMANDS:
            return None
        if cmd_name in TRAIN:
            keep_freed()
        module = import_module(f"etips.cli.{COMMANDS[cmd_name]}")
        own = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
        own.command(cmd_name)(getattr(module, cmd_name))
        return get_command(own)


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
    try:
        code = app(prog_name="etips", standalone_mode=False)
    except typer.Abort:
        sys.exit(1)
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
    sys.exit(code if isinstance(code, int) else 0)
