"""What it saves that freed memory stays with the process.

    python -m benchmarks.heap

The same training on one core in two kinds of processes, in turns: as the C library has it, and
with `keep_freed`. Seconds are of the processor, the system's share included.
"""

import resource
import subprocess
import sys
import time

import torch

from benchmarks.folds import TASKS, Task, train_once
from etips.machine import keep_freed

ROUNDS = 3
EPOCHS = 2


def measure(task: Task) -> None:
    """Print processor seconds and peak mebibytes of one training."""
    torch.set_num_threads(1)
    begun = time.process_time()
    train_once(task, n_sets=2, epochs=EPOCHS, input_dropout=0.3)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.process_time() - begun, peak)


def ask(task: Task, *, keep: bool) -> tuple[float, float]:
    """What a process of its own measures."""
    command = [sys.executable, "-m", "benchmarks.heap", task.name, "keep" if keep else "leave"]
    seconds, peak = subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.split()
    return float(seconds), float(peak)


def main() -> None:
    print(f"{'task':20} {'left alone':>20} {'kept':>20} {'ratio':>6}")
    for task in TASKS:
        found = {keep: [] for keep in (False, True)}
        for _ in range(ROUNDS):
            for keep, runs in found.items():
                runs.append(ask(task, keep=keep))
        (slow, few), (fast, many) = (min(found[keep]) for keep in (False, True))
        print(
            f"{task.name:20} {slow:8.2f} s {few:5.0f} MiB {fast:8.2f} s {many:5.0f} MiB"
            f" {slow / fast:6.2f}"
        )


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        if sys.argv[2] == "keep":
            keep_freed()
        measure(next(task for task in TASKS if task.name == sys.argv[1]))
