"""Tasks done on a Ray cluster, which joblib hands out to it. Importing this needs ray.

The machines share no disk: what a task reads, and the files that it leaves, travel as bytes.
"""

import logging
import os
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import ray
import torch

from etips.errors import SettingError
from etips.runs.archives import pack, unpack
from etips.runs.tasks import DONE, TRIES, LostTaskError, Pool, RefusedError, Task, outcome_of
from etips.version import __version__

LOCAL = "local"
"""The address that starts a cluster on this machine."""

LOCAL_WORKERS = 2

_PATIENCE = 10.0  # seconds for a machine to answer


@contextmanager
def cluster_pool(
    address: str, folder: Path, inputs: Sequence[str], *, on_gpu: bool
) -> Iterator[Pool]:
    """Connect, and be connected while the pool is in use: threads here, each waiting for a worker.

    Ray's own backend of joblib gives no result before all are there.
    """
    _connect(address)
    try:
        size = max(int(ray.cluster_resources().get("GPU" if on_gpu else "CPU", 1)), 1)
        remote = ray.remote(_do_elsewhere).options(num_cpus=1, num_gpus=int(on_gpu), max_retries=0)
        send = partial(
            remote.remote,
            versions=_versions(),
            inputs=tuple(inputs),
            archive=ray.put(pack(folder, inputs)),
        )
        backend = {"backend": "threading"}
        yield Pool(size, backend, partial(_have_done, send), partial(_receive, folder), ())
    except ray.exceptions.RayError as error:  # before or after a task, not in it
        rule = "cannot do tasks: etips is missing on a worker, or its disk is full"
        raise SettingError("cluster", rule, fix="Look at Ray's own log.") from error
    finally:
        ray.shutdown()


def _have_done(send: Callable[[Task], Any], task: Task) -> tuple[Exception | None, bytes]:
    """Have a task done somewhere, again where its worker is lost; wait for the answer."""
    for _ in range(TRIES):
        try:
            answer: tuple[Exception | None, bytes] = ray.get(send(task))
        except ray.exceptions.RayTaskError:
            raise
        except ray.exceptions.RayError:
            continue
        return answer
    raise LostTaskError(task.name)


def _do_elsewhere(
    task: Task, versions: str, inputs: Sequence[str], archive: bytes
) -> tuple[Exception | None, bytes]:
    """On a worker: do a task in a temporary folder; send back how it went, and its files."""
    if versions != _versions():
        rule = f"cluster: must have {versions} on every machine, one has {_versions()}."
        return RefusedError(rule, SettingError.exit_code), b""
    with tempfile.TemporaryDirectory(prefix="etips-") as scratch:
        place = Path(scratch)
        unpack(archive, place, inputs)
        problem = outcome_of(task, place / task.name)
        return problem, b"" if problem else pack(place, [task.name])


def _receive(folder: Path, task: Task, answer: tuple[Exception | None, bytes]) -> None:
    """Keep what a worker sent, or raise what it could not do."""
    problem, files = answer
    if problem is not None:
        raise problem
    unpack(files, folder, [task.name], last=DONE)


def _connect(address: str) -> None:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # it would report to its makers
    options: dict[str, object] = {"address": address}
    if address == LOCAL:
        options |= {  # by this address Ray starts one even where another is running
            "num_cpus": LOCAL_WORKERS,
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
        }
    else:
        _require_answer(address)
    try:
        ray.init(**options, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        rule = "Ray here and the cluster at that address do not get along"
        fix = "Both need the same Ray and Python versions, and the same RAY_AUTH_TOKEN if any."
        raise SettingError("cluster", rule, fix=fix) from error


def _require_answer(address: str) -> None:
    """Refuse at once where nothing answers: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return  # "auto", say: Ray knows where to look
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except (OSError, ValueError, OverflowError) as error:
        fix = "Start one with: ray start --head."
        raise SettingError("cluster", "no Ray cluster answers at that address", fix=fix) from error


def _versions() -> str:
    """What equal results need on every machine."""
    return f"etips {__version__} and torch {torch.__version__.partition('+')[0]}"
