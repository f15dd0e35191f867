"""Commands as a user calls them, in this process: those that succeed and those that are refused."""

import re
import time

from typer.testing import CliRunner

from etips.cli.main import app

FAR = re.compile(r" ?\d+%  .+\n")
"""How far a command is, told once a minute: on a busy machine even a short run may take one."""
A_MINUTE = 60.0


def call(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def run(*arguments):
    """A command that succeeds; its output."""
    started = time.monotonic()
    result = call(*arguments)
    took = time.monotonic() - started
    assert result.exit_code == 0, (result.output, result.exception)
    assert (result.stderr if took < A_MINUTE else FAR.sub("", result.stderr)) == ""
    return result.stdout


def refuse(*arguments):
    """A command that is refused: exit code 2, nothing printed, one line that is returned."""
    result = call(*arguments)
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"etips {arguments[0]}: ")
    return line
