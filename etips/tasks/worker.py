"""The process that does tasks for another one: `python -m etips.tasks.worker`.

It reads a task a line from its input, with its folder, as JSON, and answers each with a line of
JSON on its output. When its input ends, the process that gave the tasks is gone, by
`kill -9` perhaps: then it ends at once, so that nobody works on in a folder that another may take.
"""

import json
import os
import queue
import sys
import threading
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import BinaryIO

from etips.errors import EtipsError, ResourceError
from etips.machine import keep_freed
from etips.tasks.task import Task, do
from etips.tasks.workers import Outcome


def main() -> None:
    """Do tasks until there are no more."""
    keep_freed()
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what some library prints is no answer
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, lines), daemon=True).start()
    while True:
        asked = json.loads(lines.get())
        outcome = perform_task(asked["task"], Path(asked["folder"]))
        answers.write(json.dumps(asdict(outcome)).encode() + b"\n")


def perform_task(text: str, folder: Path) -> Outcome:
    """Do a task in its folder; say how it went.

    Args:
        text: The task.
        folder: Its own.
    """
    try:
        do(Task.from_json(text), folder)
    except EtipsError as error:
        return Outcome("refused", str(error), error.exit_code)
    except MemoryError:
        return Outcome("refused", "not enough memory", ResourceError.exit_code)
    except Exception as error:  # noqa: BLE001  # a bug, to be shown where the command was given
        return Outcome("broken", _plain(error))
    return Outcome("done")


def _listen(asked: BinaryIO, to: "queue.SimpleQueue[bytes]") -> None:
    for line in asked:
        to.put(line)
    os._exit(0)


def _plain(error: Exception) -> str:
    """A traceback without the error's message, which may quote a patient's value."""
    places = "".join(traceback.format_tb(error.__traceback__))
    kind = type(error).__name__
    return f"{places}{kind}, its message left out: it may quote the data; one job shows it"


if __name__ == "__main__":
    main()
