"""A toy run in two stages, and ways to kill it; the tests start this file as a process of its own.

It imports torch once and forks a child for every run, so that ten kills do not cost ten imports.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import torch
from safetensors.torch import save as save_tensors

from etips.errors import FileError
from etips.files.fingerprint import fingerprint
from etips.files.writing import write_file
from etips.learn.fitting.prepare import prepare
from etips.learn.training.loop import train
from etips.learn.training.objectives import Sliced, cross_entropy, translated_ips
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network
from etips.runs.run import Run, read_log
from etips.worlds.clinic import Clinic

LONG = Settings(epochs=4, batch_size=24, learning_rate=0.1, patience=2, dropout=0.2)
SHORT = Settings(epochs=1, batch_size=300, learning_rate=0.01, dropout=0.2)
RESULT = "policy.safetensors"


def toy():
    """A few hundred stays, two folds."""
    data = Clinic(n_actions=3).log(300, seed=1)
    return prepare(data, n_folds=2, seed=0, device=torch.device("cpu"))


def work(folder, prepared, settings, *, opened=lambda: None):
    """The whole run: propensity networks, a policy from them, its file; then the traces go."""
    with Run(folder, fingerprint(data=prepared.data, settings=settings), every=0) as run:
        opened()
        steps, data = prepared.steps, prepared.data
        network = Network(GRU(8), steps.n_features, data.static.shape[1], data.n_actions)
        log_chance = prepared.by_row(-torch.ones(data.n_decisions).numpy())
        clinicians = _fit(
            run,
            "propensity",
            prepared,
            Bundle.start(network, [1, 2]),
            lambda outputs, seen: cross_entropy(outputs, prepared.action[seen]),
            settings,
        )
        shift = torch.tensor([[0.3], [0.3], [0.8], [0.8]])
        policy = _fit(
            run,
            "policy",
            prepared,
            clinicians.select([0, 1, 0, 1]),
            Sliced(
                lambda outputs, seen, these: translated_ips(
                    outputs,
                    prepared.action[seen],
                    prepared.loss[seen],
                    log_chance[seen],
                    shift[these],
                )
            ),
            settings,
        )
        write_file(folder / RESULT, save_tensors(policy.parameters))
        run.clear()


def _fit(run, name, prepared, start, objective, settings):
    stage = run.stage(name, start, settings)
    if stage.networks is not None:
        return stage.networks
    weight, held_out = prepared.folds.tile(start.n_members // prepared.folds.n_networks)
    best, _ = train(
        start,
        prepared.steps,
        objective,
        weight=weight,
        held_out=held_out,
        settings=settings,
        report=stage.reporting(None),
        state=stage.state,
        keep=stage.keep,
    )
    return stage.finish(best)


def fork(job):
    """Do it in a child; its exit status is 0 if it was done, 2 if refused, 1 if it broke."""
    child = os.fork()
    if child:
        return child
    try:
        job()
    except FileError:
        os._exit(2)
    except BaseException:  # noqa: BLE001  # a child must not go on as its parent
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def wait(child):
    """Its exit status; minus nine if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def finish(folder, prepared, settings):
    """The same command once more, to its end."""
    return end_of(folder, wait(fork(lambda: work(folder, prepared, settings))))


def end_of(folder, status):
    """What a run came to: exit status, weights, epochs in its log, files in its folder."""
    lines = [line for line in read_log(folder / "log.jsonl") if "epoch" in line]
    # Sorted: killed while its checkpoints are removed, a run goes through one stage of two again.
    epochs = sorted([line["stage"], line["epoch"], line["held_out"]] for line in lines)
    return {
        "status": status,
        "weights": (folder / RESULT).read_bytes().hex(),
        "epochs": epochs,
        "files": left_in(folder),
    }


def left_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def at_random(base, prepared, kills, seed):
    """Kill at random moments; a run that got to its end counts too, and another begins."""
    began = time.perf_counter()
    whole = finish(base / "whole", prepared, LONG)
    took, choose = time.perf_counter() - began, random.Random(seed)
    hits = torn = started = 0
    ends, folder = [], base / "run0"
    while hits < kills:
        child = fork(lambda here=folder: work(here, prepared, LONG))
        time.sleep(choose.uniform(0, 0.3 * took))
        os.kill(child, signal.SIGKILL)
        status = wait(child)
        hits += status == -9
        torn += sum(path.endswith(".part") for path in left_in(folder)) if folder.exists() else 0
        if status != -9:
            ends.append(end_of(folder, status))
            started += 1
            folder = base / f"run{started}"
    ends.append(finish(folder, prepared, LONG))
    return {"whole": whole, "ends": ends, "torn": torn, "seconds": took}


def at_every_call(base, prepared):
    """Kill before the first, second, third ... call that changes the disk, until none is left."""
    whole = finish(base / "whole", prepared, SHORT)
    ends, status = [], -9
    while status == -9:
        nth = len(ends) + 1
        folder = base / f"call{nth}"
        status = wait(fork(lambda here=folder, nth=nth: _doomed(here, prepared, nth)))
        ends.append(finish(folder, prepared, SHORT))
        shutil.rmtree(folder)
    return {"whole": whole, "ends": ends, "last": status}


def _doomed(folder, prepared, nth):
    left = nth

    def counted(real, counts=lambda *_: True):
        def call(*arguments, **options):
            nonlocal left
            left -= bool(counts(*arguments))
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*arguments, **options)

        return call

    os.open = counted(os.open, lambda _, flags, *__: flags & os.O_CREAT)
    for name in ("fsync", "replace", "unlink", "rmdir", "mkdir"):
        setattr(os, name, counted(getattr(os, name)))
    work(folder, prepared, SHORT)


def races(base, prepared, number):
    """Two processes at one folder: who got in, and what came of it."""
    whole = finish(base / "whole", prepared, SHORT)
    found = []
    for race in range(number):
        folder = base / f"race{race}"
        said_in, said_out = os.pipe()
        go_in, go_out = os.pipe()

        def held(said_out=said_out, go_in=go_in):
            os.write(said_out, b"in ")
            os.read(go_in, 1)  # the winner stays until the other one has tried

        began = time.perf_counter()
        children = [
            fork(lambda here=folder, stay=held: work(here, prepared, SHORT, opened=stay))
            for _ in range(2)
        ]
        loser, status = os.waitpid(-1, 0)
        took = time.perf_counter() - began
        os.write(go_out, b"g")
        winner = next(child for child in children if child != loser)
        statuses = [os.waitstatus_to_exitcode(status), wait(winner)]
        inside = os.read(said_in, 100).decode().split()
        for descriptor in (said_in, said_out, go_in, go_out):
            os.close(descriptor)
        found.append([statuses, inside, end_of(folder, 0) == whole, took])
    return {"races": found}


def main():
    torch.set_num_threads(1)
    job, base, *more = sys.argv[1:]
    given = [int(value) for value in more]
    prepared = toy()
    work(Path(base) / "warm", prepared, SHORT)  # what torch prepares on first use, children inherit
    jobs = {"at_random": at_random, "at_every_call": at_every_call, "races": races}
    print(json.dumps(jobs[job](Path(base), prepared, *given)))


if __name__ == "__main__":
    main()
