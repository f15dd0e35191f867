"""What it gains that several learners share a GPU, each on a stream of its own.

    python -m benchmarks.streams

So many learners one after the other, and so many at a time, in turns; the clock counts, with the
capture of the steps. Data are seeded noise of the shape of each task.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.folds import TASKS, Task, make
from etips.data.trajectories import Trajectories
from etips.learn import TIPS, Training
from etips.learn.training.settings import Settings
from etips.learn.training.sharing import Sharing
from etips.models.encoders.gru import GRU
from etips.runs.tasks import Task as Work
from etips.runs.tasks import run_tasks

N_STAYS, EPOCHS, AT_A_TIME = 20_000, 6, (1, 2, 4, 6, 8)


def seconds(data: Trajectories, task: Task, *, n_learners: int, n_threads: int) -> float:
    """How long so many learners take, so many of them at a time."""
    settings = Settings(epochs=EPOCHS, batch_size=task.batch_size)
    training = Training(
        n_folds=task.n_folds, device="cuda", propensity=settings, policy=settings, calibrate=False
    )

    @dataclass(frozen=True)
    class Fit:
        seed: int

        def run(self, _: Path, sharing: Sharing | None) -> dict[str, object]:
            learner = TIPS(
                encoder=GRU(task.hidden, embed=64),
                training=training,
                translations=(0.5, 0.7),
                support=0.0,
                seed=self.seed,
            )
            learner.fit(data, sharing=sharing)
            return {}

    fits = [Work(f"fit-{n}", Fit(n), device="cuda") for n in range(n_learners)]
    began = time.perf_counter()
    with TemporaryDirectory() as folder:
        run_tasks(fits, Path(folder), jobs=n_threads)
    torch.cuda.synchronize()
    return time.perf_counter() - began


def main() -> None:
    """Print seconds a learner, and how many times faster that is than one after the other."""
    if not torch.cuda.is_available():
        print("This benchmark needs a GPU.")
        return
    for task in (TASKS[0], TASKS[2]):
        data = make(task, N_STAYS)
        seconds(data, task, n_learners=1, n_threads=1)  # libraries wake up
        alone = seconds(data, task, n_learners=2, n_threads=1) / 2
        for n in AT_A_TIME:
            each = seconds(data, task, n_learners=n, n_threads=n) / n
            print(f"{task.name}, {n} at a time: {each:.2f} s each, {alone / each:.2f} times")


if __name__ == "__main__":
    main()
