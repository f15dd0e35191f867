"""Seconds and peak memory of a fit and of an evaluation, from a thousand stays to 300,000.

    python -m benchmarks.growth                                   # 1,000 to 30,000 on this machine
    python -m benchmarks.growth --stays 1000 10000 100000 300000 --device cuda
    python -m benchmarks.growth --features host --device cuda     # they stream from the host

Every fit and every evaluation is a process of its own, with the defaults. Where pyarrow is
installed they are the commands on Parquet tables; elsewhere (torch, numpy and safetensors are
enough) the same through Python on stays made in memory. The world is the clinic with 17 decisions
a stay, 5.1 million of 300,000 stays; `--world icu` takes ICU-Sepsis. The last column is the power
of the number of stays by which processor seconds grew since the line before: 1 is in proportion.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from etips.data.trajectories import Trajectories
from etips.worlds import icu_sepsis
from etips.worlds.clinic import Clinic

WORLDS = ("clinic", "icu")
DECISIONS = 17
_COLUMNS = ("--stay", "stay", "--step", "step", "--action", "action", "--loss", "loss")


def make(world: str, n: int, seed: int) -> Trajectories:
    """Logged stays whose propensities nobody knows."""
    if world == "icu":
        data = icu_sepsis.simulate(n, seed=seed, lag=0)
    else:
        clinic = Clinic(n_contexts=2_000, n_features=20, decisions_per_stay=DECISIONS)
        data = clinic.log(n, seed=seed)
    return replace(data, propensity=None, truth=None)


def work(what: str, options: argparse.Namespace, place: Path) -> None:
    """In a process of its own: a fit or an evaluation on stays made in memory; prints JSON."""
    import torch

    from etips.machine import own_process

    own_process()
    n = options.stays[0]
    data = make(options.world, n, seed=int(what == "evaluate"))
    began, before = time.perf_counter(), time.process_time()
    if what == "fit":
        from etips.learn.fitting.stages import Training
        from etips.learn.learners.weighted import EtIPS

        training = Training(device=options.device, features=options.features)
        EtIPS(training=training).fit(data).save(place / "policy", overwrite=True)
    else:
        from etips.learn.fitting.stages import Training
        from etips.policies.policy_files import load_policy
        from etips.results.evaluate import evaluate
        from etips.results.evaluation_log import Models

        models = Models(training=Training(device=options.device))
        evaluate({"policy": load_policy(place / "policy")}, data, models=models)
    used = [time.perf_counter() - began, time.process_time() - before]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    gpu = torch.cuda.max_memory_allocated() / 2**20 if torch.cuda.is_available() else 0.0
    print("took", json.dumps([*used, peak, gpu]))


def measure(what: str, n: int, options: argparse.Namespace, place: Path) -> list[float]:
    """Wall and processor seconds, peak MiB of the process and of the GPU."""
    if options.memory:
        own = [sys.executable, "-m", "benchmarks.growth", "--one", what, "--place", str(place)]
        own += ["--stays", str(n), "--world", options.world, "--device", options.device]
        own += ["--features", options.features]
    else:
        own = [sys.executable, "-m", "etips", what]
        run, table = place / f"run-{n}", place / f"{what}-{n}.parquet"
        if not table.exists():
            from etips.data.storage import write_table

            write_table(make(options.world, n, seed=int(what == "evaluate")), table)
        own += [str(table), "--out", str(run)] if what == "fit" else [str(run), str(table)]
        own += [*_COLUMNS, "--lag", "0", "--device", options.device] if what == "fit" else []
        own += ["--set", f"features={options.features}"] if what == "fit" else []
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(own, stdout=said, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        for file in (said, errors):
            file.seek(0)
        if process.returncode:
            raise SystemExit(f"{what} of {n:,} stays: {errors.read().decode()[-2000:]}")
        lines = said.read().decode().splitlines()
    if options.memory:
        took = next(line for line in lines if line.startswith("took "))
        return [float(value) for value in json.loads(took.removeprefix("took "))]
    return [wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, math.nan]


def main() -> None:
    """Everything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stays", type=int, nargs="+", default=[1_000, 3_000, 10_000, 30_000])
    parser.add_argument("--world", choices=WORLDS, default="clinic")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--what", nargs="+", choices=("fit", "evaluate"), default=[])
    parser.add_argument("--memory", action="store_true", help="through Python, without tables")
    parser.add_argument("--features", default="auto", help="of a fit: auto, device or host")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--place", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        work(options.one, options, options.place)
        return
    options.memory = options.memory or find_spec("pyarrow") is None
    kinds = options.what or ["fit", "evaluate"]
    print(f"{'':9}{'stays':>8}{'wall s':>9}{'CPU s':>9}{'MiB':>8}{'GPU MiB':>9}{'power':>7}")
    earlier: dict[str, tuple[int, float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for n in options.stays:
            for what in kinds:
                wall, used, peak, gpu = measure(what, n, options, Path(name))
                power = ""
                if what in earlier:
                    last, took = earlier[what]
                    power = f"{math.log(used / took) / math.log(n / last):.2f}"
                earlier[what] = n, used
                shown = "" if math.isnan(gpu) else f"{gpu:.0f}"
                line = f"{what:9}{n:8,}{wall:9.1f}{used:9.1f}{peak:8.0f}{shown:>9}{power:>7}"
                print(line, flush=True)


if __name__ == "__main__":
    main()
