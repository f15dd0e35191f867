"""The process that does tasks for another one: `python -m etips.tasks.worker`.

It reads an order a line from its input, the task and its folder as JSON, and answers each with a
line of JSON on its output. When its input ends, the process that gave the orders is gone, by
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
from etips.tasks.workers import Answer


def main() -> None:
    """Do orders until there are no more."""
    keep_freed()
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what some library prints is no answer
    orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, orders), daemon=True).start()
    while True:
        order = json.loads(orders.get())
        answer = answer_to(order["task"], Path(order["folder"]))
        answers.write(json.dumps(asdict(answer)).encode() + b"\n")


def answer_to(order: str, folder: Path) -> Answer:
    """Do a task in its folder; say how it went.

    Args:
        order: The task as text.
        folder: Its own.
    """
    try:
        do(Task.from_json(order), folder)
    except EtipsError as error:
        return Answer("refused", str(error), error.exit_code)
    except MemoryError:
        return Answer("refused", "not enough memory", ResourceError.exit_code)
    except Exception as error:  # noqa: BLE001  # a bug, to be shown where the command was given
        return Answer("broken", _plain(error))
    return Answer("done")


def _listen(orders: BinaryIO, to: "queue.SimpleQueue[bytes]") -> None:
    for line in orders:
        to.put(line)
    os._exit(0)


def _plain(error: Exception) -> str:
    """A traceback without the error's message, which may quote a patient's value."""
    places = "".join(traceback.format_tb(error.__traceback__))
    kind = type(error).__name__
    return f"{places}{kind}, its message left out: it may quote the data; one job shows it"


if __name__ == "__main__":
    main()
