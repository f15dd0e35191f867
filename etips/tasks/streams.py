"""Tasks done by threads of this process, which share a GPU: see `learn/training/sharing.py`."""

import threading
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue

from etips.learn.training.sharing import Sharing, UnwantedError
from etips.tasks.workers import Event, Events

Do = Callable[[str, Sharing], object]
"""Does the task of this name as one of those that share a device."""


def run_in_threads(names: Sequence[str], do: Do, *, n_threads: int) -> Events:
    """Have every task done by one of `n_threads`; close the iterator to stop them.

    Args:
        names: The tasks, in the order in which they are taken up.
        do: What to call for each.
        n_threads: How many at a time.
    """
    sharing, waiting, told = Sharing(n_threads), SimpleQueue[str](), SimpleQueue[_Told]()
    for name in names:
        waiting.put(name)
    threads = [
        # Daemons, so that an interrupt ends them with the process.
        threading.Thread(target=_work, args=(waiting, told, do, sharing), daemon=True)
        for _ in range(n_threads)
    ]
    for thread in threads:
        thread.start()
    try:
        left = len(names)
        while left:
            what = told.get()
            if isinstance(what, BaseException):
                raise what
            yield what
            left -= what.done
    finally:
        sharing.halt.set()
        for thread in threads:
            thread.join()


_Told = Event | BaseException


def _work(
    waiting: "SimpleQueue[str]", told: "SimpleQueue[_Told]", do: Do, sharing: Sharing
) -> None:
    """Do tasks until there are no more, or nobody wants them."""
    with sharing.on_own_stream():
        while not sharing.halt.is_set():
            try:
                name = waiting.get_nowait()
            except Empty:
                return
            told.put(Event(name))
            try:
                do(name, sharing)
            except UnwantedError:
                return
            except BaseException as error:  # noqa: BLE001  # raised where the tasks are waited for
                told.put(error)
                return
            told.put(Event(name, done=True))
