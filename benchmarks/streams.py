"""What it gains that several learners share a GPU, each on a stream of its own.

    python -m benchmarks.streams

So many learners one after the other, and so many at a time, in turns; the clock counts, with the
capture of the steps. Data are seeded noise of the shape of each task.
"""

import time

import torch

from benchmarks.folds import TASKS, Task, make
from etips.data.trajectories import Trajectories
from etips.learn import TIPS, Training
from etips.learn.training.settings import Settings
from etips.learn.training.sharing import Sharing
from etips.models.encoders.gru import GRU
from etips.tasks.streams import run_in_threads

N_STAYS, EPOCHS, AT_A_TIME = 20_000, 6, (1, 2, 4, 6, 8)


def seconds(data: Trajectories, task: Task, *, n_learners: int, n_threads: int) -> float:
    """How long so many learners take, so many of them at a time."""
    settings = Settings(epochs=EPOCHS, batch_size=task.batch_size)
    training = Training(
        n_folds=task.n_folds, device="cuda", propensity=settings, policy=settings, calibrate=False
    )

    def fit(name: str, sharing: Sharing) -> None:
        learner = TIPS(
            encoder=GRU(task.hidden, embed=64),
            training=training,
            translations=(0.5, 0.7),
            support=0.0,
            seed=int(name),
        )
        learner.fit(data, sharing=sharing)

    began = time.perf_counter()
    for _ in run_in_threads([str(n) for n in range(n_learners)], fit, n_threads=n_threads):
        pass
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
