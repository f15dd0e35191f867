"""What more cores bring: a training, and a whole fit with its defaults, on 1, 2, 4, 8, 16 cores.

    python -m benchmarks.cores                    as many cores as there are, up to 16
    python -m benchmarks.cores --cores 1 2        these
    python -m benchmarks.cores --ways processes threads torch
    python -m benchmarks.cores --quick            less to learn, rougher figures
    python -m benchmarks.cores --stages 8000      stages of a default fit of so many stays
    python -m benchmarks.cores --apart 8000       as many such fits at once as cores, one each

Needs torch, numpy and safetensors, nothing else; GPUs are not looked at. Data are seeded noise of
the shape of each task, but for the stages, which are those of ICU-Sepsis. The process is held to
that many cores. Printed are the least wall seconds of some rounds, in which numbers of cores take
turns, the processor's seconds with those of all processes, the speed over that on one core, and
whether what was learned is the same to the bit.

Fits apart know nothing of each other, so what they lose by their neighbours is the machine's:
caches, memory, arithmetic units, clocks. No way of sharing a fit out can bring more than that.

Ways: processes, as training has it; threads, as it has it where processes cannot be forked; torch,
teams one after another with torch's own threads within each operation, as it was before.
"""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # before torch is imported: it would see one

import argparse
import hashlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean
from unittest import mock

import numpy as np
import torch

from benchmarks.fit_stages import Stopwatch, watched
from benchmarks.folds import Task, make, objective_of
from etips.data.trajectories import Trajectories
from etips.learn.fitting.stages import POLICY, PROPENSITY, Training
from etips.learn.learners.weighted import EtIPS
from etips.learn.training import crew, hands
from etips.learn.training.loop import train
from etips.learn.training.settings import Settings
from etips.models.batches import step_tensors
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network
from etips.worlds import icu_sepsis

CORES = (1, 2, 4, 8, 16)
WAYS = ("processes", "threads", "torch")
SEPSIS = Task("sepsis cohort", 10, 44, 25, 64, 256, 5)
ROWS = Task("digits row by row", 28, 28, 10, 64, 256, 5)
WARD = Task("a small ward", 10, 4, 3, 16, 32, 5)


@dataclass(frozen=True)
class Case:
    """Something to learn: what, on how many stays, and a name; it returns what it learned."""

    name: str
    learn: Callable[[int], bytes]
    n_stays: int


def networks(task: Task, n_sets: int, epochs: int) -> Callable[[int], bytes]:
    """Train a bundle: a network for every fold and set."""

    def learn(n_stays: int) -> bytes:
        data, fold = make(task, n_stays), np.arange(n_stays) % task.n_folds
        out = np.stack([fold == k for k in range(task.n_folds)] * n_sets)
        held_out = torch.from_numpy(out).float()
        shift = torch.linspace(0.1, 0.9, n_sets).repeat_interleave(task.n_folds)[:, None]
        network = Network(GRU(task.hidden, embed=task.hidden), task.n_features, 0, task.n_actions)
        bundle, _ = train(
            Bundle.start(network, range(len(shift))),
            step_tensors(data, earlier_actions=False),
            objective_of(data, shift),
            weight=1 - held_out,
            held_out=held_out,
            settings=Settings(epochs=epochs, batch_size=task.batch_size, dropout=0.1),
        )
        return bytes_of(bundle)

    return learn


def whole_fit(task: Task, epochs: int) -> Callable[[int], bytes]:
    """`etips.EtIPS().fit` with its defaults, but for fewer epochs."""

    def learn(n_stays: int) -> bytes:
        data: Trajectories = replace(make(task, n_stays), propensity=None)
        training = Training(
            device="cpu",
            propensity=replace(PROPENSITY, epochs=epochs, patience=epochs),
            policy=replace(POLICY, epochs=epochs, patience=epochs),
        )
        learner = EtIPS(training=training).fit(data)
        return bytes_of(learner.fit_.propensity.bundle) + repr(learner.path_).encode()

    return learn


def bytes_of(bundle: object) -> bytes:
    """All numbers of a bundle."""
    assert isinstance(bundle, Bundle)
    return b"".join(value.contiguous().numpy().tobytes() for value in bundle.parameters.values())


@contextmanager
def on(n_cores: int, way: str) -> Iterator[None]:
    """Hold this process to so many cores, and train in a way."""
    before, threads = os.sched_getaffinity(0), torch.get_num_threads()
    alone = {"n_workers": lambda _: 1, "one_thread": nullcontext} if way == "torch" else {}
    os.sched_setaffinity(0, sorted(before)[:n_cores])
    torch.set_num_threads(n_cores)
    try:
        with (
            mock.patch.object(crew, "can_fork", return_value=way == "processes"),
            mock.patch.multiple(hands, **alone) if alone else nullcontext(),
        ):
            yield
    finally:
        torch.set_num_threads(threads)
        os.sched_setaffinity(0, before)


def processor() -> float:
    """Seconds of the processor: of this process, and of those it has ended."""
    each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(own.ru_utime + own.ru_stime for own in each)


def measure(case: Case, way: str, n_cores: int) -> tuple[float, float, str]:
    """Seconds on the clock and of the processor, and a print of what was learned."""
    with on(n_cores, way):
        begun, used = time.perf_counter(), processor()
        learned = case.learn(case.n_stays)
        took, used = time.perf_counter() - begun, processor() - used
    return took, used, hashlib.sha256(learned).hexdigest()


def show_stages(n_stays: int, cores: Sequence[int], rounds: int) -> None:
    """Print what the stages of a fit with its defaults take on some numbers of cores."""
    data, taken = icu_sepsis.simulate(n_stays, seed=0, lag=0), {n: [] for n in cores}
    prints = set()
    for n_cores in list(cores) * rounds:
        clock = Stopwatch(processor)
        with on(n_cores, "processes"), watched(clock):
            learner = EtIPS(seed=0, training=Training(device="cpu")).fit(data)
        taken[n_cores].append(clock)
        learned = bytes_of(learner.fit_.propensity.bundle) + repr(learner.path_).encode()
        prints.add(hashlib.sha256(learned).hexdigest())
    stages = list(taken[cores[0]][0].wall)
    print(f"{n_stays} stays; the same to the bit: {'yes' if len(prints) == 1 else 'no'}")
    print(f"{'wall seconds, processor':26}" + "".join(f"{n:>8} core(s)" for n in cores))
    for stage in [*stages, "together"]:
        line = f"{stage:26}"
        for clocks in taken.values():
            wall = min(clock.of(stage)[0] for clock in clocks)
            used = min(clock.of(stage)[1] for clock in clocks)
            line += f"{wall:8.2f} {used:7.2f}"
        print(line, flush=True)


def show_apart(n_stays: int, cores: Sequence[int], rounds: int) -> None:
    """Print what cores bring to fits that have one each, which is the most they could to one."""
    there = sorted(os.sched_getaffinity(0))
    taken: dict[int, list[float]] = {n: [] for n in cores}
    for n_cores in list(cores) * rounds:
        taken[n_cores].append(fmean(seconds_apart(n_stays, there[:n_cores])))
    alone = min(taken[cores[0]])
    print(f"{n_stays} stays; {'cores':>6} {'a fit each, wall':>17} {'times one':>10}")
    for n_cores, each in taken.items():
        print(f"{n_cores:20} {min(each):15.2f} s {n_cores * alone / min(each):10.2f}", flush=True)


def seconds_apart(n_stays: int, cores: Sequence[int]) -> list[float]:
    """Wall seconds of fits that run at the same time, one a core."""
    fit = [sys.executable, "-m", "benchmarks.cores", "--cores", "1", "--rounds", "1"]
    each = [
        subprocess.Popen(
            [*fit, "--stages", str(n_stays)],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=partial(os.sched_setaffinity, 0, {core}),
        )
        for core in cores
    ]
    said = [process.communicate()[0].split() for process in each]
    return [float(words[words.index("together") + 1]) for words in said]


def show_cases(ways: Sequence[str], cores: Sequence[int], rounds: int, *, quick: bool) -> None:
    """Print what some trainings and a whole fit take, in each way on some numbers of cores."""
    scale, epochs = (1, 1) if quick else (4, 3)
    cases = (
        Case("45 policies, sepsis cohort", networks(SEPSIS, 9, epochs), 1280 * scale),
        Case("45 policies, digits by row", networks(ROWS, 9, epochs), 640 * scale),
        Case("5 propensities, sepsis cohort", networks(SEPSIS, 1, 3 * epochs), 1280 * scale),
        Case("45 policies, a small ward", networks(WARD, 9, epochs), 640 * scale),
        Case("a whole fit, sepsis cohort", whole_fit(SEPSIS, 2 * epochs), 1280 * scale),
    )
    print(f"{len(os.sched_getaffinity(0))} cores; torch {torch.__version__}")
    print(f"{'':30} {'way':10} {'cores':>5} {'wall':>9} {'processor':>10} {'speed':>6}  same")
    for case in cases:
        keys = [(way, n) for way in ways for n in cores]
        found = {key: [] for key in keys}
        for _ in range(rounds):
            for way, n_cores in keys:
                found[way, n_cores].append(measure(case, way, n_cores))
        first = found[keys[0]]
        for (way, n_cores), own in found.items():
            wall, base = (min(took for took, _, _ in each) for each in (own, first))
            used, same = min(used for _, used, _ in own), {p for *_, p in [*own, *first]}
            print(
                f"{case.name:30} {way:10} {n_cores:5} {wall:7.2f} s {used:8.2f} s"
                f" {base / wall:6.2f}  {'yes' if len(same) == 1 else 'no'}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    there = len(os.sched_getaffinity(0))
    usual = [n for n in CORES if n <= there]
    parser.add_argument("--cores", type=int, nargs="+", default=usual)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["processes"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--stages", type=int, metavar="STAYS")
    parser.add_argument("--apart", type=int, metavar="STAYS")
    options = parser.parse_args()
    some = [n for n in options.cores if n <= there]
    if options.stages:
        show_stages(options.stages, some, options.rounds)
    elif options.apart:
        show_apart(options.apart, some, options.rounds)
    else:
        show_cases(options.ways, some, options.rounds, quick=options.quick)


if __name__ == "__main__":
    main()
