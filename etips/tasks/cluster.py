"""Tasks done on a Ray cluster. Importing this needs ray.

Tasks go out as text and archives as bytes, both of which Ray passes on as they are. Ray pickles the
name of the function that it calls on a worker, and nothing else of ours.
"""

import json
import logging
import os
import socket
import tempfile
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import ray
import torch

from etips.errors import SettingError
from etips.tasks.archives import pack, unpack
from etips.tasks.task import DONE, Task
from etips.tasks.worker import perform_task
from etips.tasks.workers import Event, Events, Outcome, TaskTexts, count_loss
from etips.version import __version__

LOCAL = "local"
"""The address that starts a cluster on this machine."""

LOCAL_WORKERS = 2

_PATIENCE = 10.0  # seconds for a machine to answer


def open_cluster(
    texts: TaskTexts,
    folder: Path,
    *,
    address: str,
    inputs: Sequence[str],
    gpus: Collection[str],
) -> tuple[int, Events]:
    """Connect; return how many tasks can be at work, and the iterator that has them done.

    Args:
        texts: The tasks.
        folder: Gets the folder of each.
        address: As `ray.init` takes it, or "local".
        inputs: Folders of `folder` that every task reads.
        gpus: Names of the tasks that each need a GPU.
    """
    _connect(address)
    hands = int(ray.cluster_resources().get("CPU", 1))
    return max(hands, 1), _run(texts, folder, inputs, gpus)


def perform(text: str, terms: str, archive: bytes) -> tuple[str, bytes]:
    """On a worker: do a task in a folder for the while; send back the answer and its files.

    Args:
        text: The task.
        terms: What must hold here, as text: see `_terms`.
        archive: Folders that the task reads.
    """
    name, wanted = Task.from_json(text).name, json.loads(terms)
    if wanted["versions"] != _versions():
        rule = f"cluster: must have {wanted['versions']} on every machine, one has {_versions()}."
        return json.dumps(asdict(Outcome("refused", rule, SettingError.exit_code))), b""
    with tempfile.TemporaryDirectory(prefix="etips-") as scratch:
        place = Path(scratch)
        unpack(archive, place, wanted["inputs"])
        outcome = perform_task(text, place / name)
        files = pack(place, [name]) if outcome.status == "done" else b""
    return json.dumps(asdict(outcome)), files


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
    """Refuse at once where nobody answers: Ray itself would try for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return  # "auto", say: Ray knows where to look
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_PATIENCE).close()
    except (OSError, ValueError, OverflowError) as error:
        fix = "Start one with: ray start --head."
        raise SettingError("cluster", "no Ray cluster answers at that address", fix=fix) from error


def _run(texts: TaskTexts, folder: Path, inputs: Sequence[str], gpus: Collection[str]) -> Events:
    try:
        send = partial(_send, terms=_terms(inputs), archive=ray.put(pack(folder, inputs)))
        at_work: dict[Any, tuple[str, Any]] = {}
        losses: Counter[str] = Counter()
        waiting = list(texts)
        while waiting or at_work:
            for name in waiting:
                answer, files = send(texts[name], gpu=name in gpus)
                at_work[answer] = (name, files)
                yield Event(name)
            (ready,), _ = ray.wait(list(at_work))
            name, files = at_work.pop(ready)
            if _receive(ready, files, name, folder):
                waiting = []
                yield Event(name, done=True)
            else:
                count_loss(name, losses)
                waiting = [name]
    finally:
        ray.shutdown()


def _send(text: str, *, terms: str, archive: Any, gpu: bool) -> tuple[Any, Any]:  # noqa: ANN401
    """Have a task done somewhere; we count losses ourselves, so that Ray tries it once."""
    remote = ray.remote(perform).options(
        num_cpus=1, num_gpus=int(gpu), num_returns=2, max_retries=0
    )
    answer, files = remote.remote(text, terms, archive)
    return answer, files


def _receive(answer: Any, files: Any, name: str, folder: Path) -> bool:  # noqa: ANN401
    """Keep what a worker sent; False if the worker is lost."""
    try:
        outcome = Outcome(**json.loads(ray.get(answer)))
        outcome.require_done(name)
        unpack(ray.get(files), folder, [name], last=DONE)
    except ray.exceptions.RayTaskError as error:  # before or after the task, not in it
        rule = "cannot do tasks: etips is missing on a worker, or its disk is full"
        raise SettingError("cluster", rule, fix="Look at Ray's own log.") from error
    except ray.exceptions.RayError:
        return False
    return True


def _terms(inputs: Sequence[str]) -> str:
    return json.dumps({"versions": _versions(), "inputs": list(inputs)})


def _versions() -> str:
    """What equal results need on every machine."""
    return f"etips {__version__} and torch {torch.__version__.partition('+')[0]}"
