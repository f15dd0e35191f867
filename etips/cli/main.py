"""The `etips` command."""

import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from etips.machine import importing, keep_freed, own_process, share_cores
from etips.version import __version__

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""


@dataclass(frozen=True)
class Entry:
    """A command for the help page; `sentence` is the first line of its own help."""

    module: str
    sentence: str
    trains: bool = False


COMMANDS: Mapping[str, Entry] = {
    "demo": Entry(
        "demo",
        "Simulate ICU-Sepsis stays, learn every policy, evaluate it, and compare with the truth.",
        trains=True,
    ),
    "cohort": Entry(
        "cohort",
        "Build the Sepsis-3 cohort of the paper from the raw tables of a hospital database.",
    ),
    "validate": Entry(
        "cohort",
        "Compare a cohort with published figures: target, what is accepted, found, pass or fail.",
    ),
    "simulate": Entry(
        "simulate",
        "Write a simulated data set with its true propensities and true expected losses.",
    ),
    "check": Entry(
        "check",
        "Say what a table would be read as, guess what was not said, and write it as table.toml.",
    ),
    "fit": Entry(
        "fit", "Learn a policy from logged decisions and write it as a run folder.", trains=True
    ),
    "tune": Entry(
        "tune",
        "Search for settings of least held-out risk, and write them as best.toml.",
        trains=True,
    ),
    "recommend": Entry(
        "recommend", "Write what the policy recommends, one row a decision, in decision order."
    ),
    "evaluate": Entry(
        "evaluate", "Estimate the risk of policies, each with interval, diagnosis and verdict."
    ),
    "compare": Entry(
        "compare",
        "Compare policies, rules and what was done: paired differences, "
        "corrected for their number.",
    ),
    "explain": Entry(
        "explain",
        "Say why a policy recommends what it does: for one stay, on the whole, or as rules.",
        trains=True,
    ),
    "export": Entry("export", "Write a policy for other programs, as one ONNX file."),
    "reproduce": Entry(
        "reproduce",
        "Repeat a study of the paper: every method, every fold, the published figure beside ours.",
        trains=True,
    ),
    "bench": Entry(
        "bench",
        "Run every method in every world with known truth: who is best, by how much, at what cost.",
        trains=True,
    ),
    "report": Entry(
        "report",
        "Write results as one self-contained page: finding, evidence, overlap, subgroups, record.",
    ),
    "serve": Entry(
        "serve",
        "Serve a policy: pages to look at stays and try changes, and recommendations as JSON.",
    ),
}
"""Every command, in the order of the help page."""


class _Group(TyperGroup):
    """Imports a command when it is called: some bring torch, some a query engine.

    The help page lists them by their entries and imports none.
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
        entry = COMMANDS[cmd_name]
        if self._lists:
            return TyperCommand(cmd_name, help=entry.sentence)
        if entry.trains:
            keep_freed()
        with importing() if entry.trains else nullcontext():
            module = import_module(f"etips.cli.{entry.module}")
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
    share_cores()
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
    sys.exit(code if isinstance(code, int) else 0)
