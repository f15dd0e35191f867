"""Commands as a user calls them, in this process: those that succeed and those that are refused."""

import logging
import re
import time
from contextlib import contextmanager

from typer.testing import CliRunner

from etips.cli.main import app

FAR = re.compile(r" ?\d+%  .+\n")
"""How far a command is, told once a minute: on a busy machine even a short run may take one."""
A_MINUTE = 60.0


def call(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


class Notes(logging.Handler):
    """Hears the remarks of a command, which it prints on stderr, a line each."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.lines = []

    def emit(self, record):
        if record.name == "etips":
            self.lines.append(record.getMessage())

    @contextmanager
    def listening(self):
        logger = logging.getLogger("etips")
        level = logger.level
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.setLevel(level)


def run(*arguments):
    """A command that succeeds; its output. On stderr stand remarks and nothing else."""
    started, notes = time.monotonic(), Notes()
    with notes.listening():
        result = call(*arguments)
    took = time.monotonic() - started
    assert result.exit_code == 0, (result.output, result.exception)
    told = result.stderr if took < A_MINUTE else FAR.sub("", result.stderr)
    assert [line for line in told.splitlines() if line not in notes.lines] == []
    return result.stdout


def refuse(*arguments):
    """A command that is refused: exit code 2, nothing printed, one line that is returned."""
    result = call(*arguments)
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"etips {arguments[0]}: ")
    return line
