"""The `etips` command."""

from typing import Annotated

import typer

import etips
from etips.cli.demo import demo
from etips.cli.evaluate import evaluate
from etips.cli.fit import fit
from etips.cli.recommend import recommend
from etips.cli.simulate import simulate

# Rich tracebacks print local variables, and a local variable may be a patient.
app = typer.Typer(
    name="etips",
    help="Learn, evaluate and explain treatment policies from logged decisions.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command()(simulate)
app.command()(fit)
app.command()(recommend)
app.command()(evaluate)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"etips {etips.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Learn, evaluate and explain treatment policies from logged decisions.

    For research, not for clinical use.
    """


def main() -> None:
    """Run the command line."""
    app()
