"""Commands as a user calls them, in this process: those that succeed and those that are refused."""

import re

from typer.testing import CliRunner

from etips.cli.main import app

FAR = re.compile(r" ?\d+%  .+\n")
"""How far a command is, told once a minute: on a busy machine that may be twice."""


def call(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def run(*arguments):
    """A command that succeeds; its output."""
    result = call(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    assert FAR.sub("", result.stderr) == ""
    return result.stdout


def refuse(*arguments):
    """A command that is refused: exit code 2, nothing printed, one line that is returned."""
    result = call(*arguments)
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"etips {arguments[0]}: ")
    return line
