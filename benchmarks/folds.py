"""What it saves that networks of a fold read only the stays that count for them.

    python -m benchmarks.folds

One epoch of cross-fitted policies on one core, all networks in step and a team a fold, in turns;
the processor's time counts. Data are seeded noise of the shape of each task.
"""

import math
import time
from dataclasses import dataclass

import numpy as np
import torch

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.learn.training import teams
from etips.learn.training.loop import train
from etips.learn.training.objectives import Weighted, translated_ips, weigh
from etips.learn.training.settings import Settings
from etips.models.batches import step_tensors
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network

N_STAYS = 2560
ROUNDS = 3


@dataclass(frozen=True)
class Task:
    """Shape of a task: steps a stay, features, actions, networks' width, stays a batch."""

    name: str
    n_steps: int
    n_features: int
    n_actions: int
    hidden: int
    batch_size: int
    n_folds: int


TASKS = (
    Task("digits row by row", 28, 28, 10, 64, 256, 3),
    Task("counting zeros", 17, 784, 3, 64, 128, 3),
    Task("sepsis cohort", 10, 44, 25, 64, 256, 5),
    Task("a small ward", 10, 4, 3, 16, 32, 5),
)


def make(task: Task, n_stays: int = N_STAYS) -> Trajectories:
    """Noise of the task's shape."""
    rng = np.random.default_rng(0)
    total = n_stays * task.n_steps
    return Trajectories(
        sequence=rng.normal(size=(total, task.n_features)).astype(np.float32),
        offsets=np.arange(n_stays + 1) * task.n_steps,
        schema=Schema(
            sequence=tuple(f"x{i}" for i in range(task.n_features)), n_actions=task.n_actions
        ),
        action=rng.integers(0, task.n_actions, total),
        loss=(rng.random(total) < 0.5).astype(np.float64),
        propensity=rng.uniform(0.1, 0.5, total),
    )


def objective_of(data: Trajectories, translation: torch.Tensor) -> Weighted:
    """The translated risk, one translation a network."""
    action, loss = torch.from_numpy(data.action), torch.from_numpy(data.loss).float()
    chance = torch.from_numpy(np.log(data.propensity)).float()

    def value(outputs: torch.Tensor, seen: torch.Tensor, these: slice) -> torch.Tensor:
        return translated_ips(outputs, action[seen], loss[seen], chance[seen], translation[these])

    def weight(outputs: torch.Tensor, seen: torch.Tensor, these: slice) -> torch.Tensor:  # noqa: ARG001
        return weigh(outputs, action[seen], chance[seen])

    return Weighted(value, weight)


def train_once(task: Task, *, n_sets: int, epochs: int = 1, input_dropout: float = 0.0) -> None:
    """Train a network for every fold and set."""
    data, n_networks = make(task), n_sets * task.n_folds
    fold = np.arange(N_STAYS) % task.n_folds
    held_out = torch.from_numpy(np.stack([fold == k for k in range(task.n_folds)] * n_sets)).float()
    translation = torch.linspace(0.3, 0.7, n_sets).repeat_interleave(task.n_folds)[:, None]
    network = Network(GRU(task.hidden, embed=task.hidden), task.n_features, 0, task.n_actions)
    train(
        Bundle.start(network, range(n_networks)),
        step_tensors(data, earlier_actions=False),
        objective_of(data, translation),
        weight=1 - held_out,
        held_out=held_out,
        settings=Settings(
            epochs=epochs, batch_size=task.batch_size, dropout=0.2, input_dropout=input_dropout
        ),
    )


def seconds(task: Task, n_sets: int) -> tuple[float, float]:
    """Processor time of an epoch, all networks in step and in teams; the least of some rounds."""
    worth, found = teams.WORTH, ([], [])
    for _ in range(ROUNDS):
        for times, teams.WORTH in zip(found, (math.inf, worth), strict=True):
            begun = time.process_time()
            train_once(task, n_sets=n_sets)
            times.append(time.process_time() - begun)
    return min(found[0]), min(found[1])


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'task':20} {'folds':>5} {'translations':>12} {'in step':>9} {'teams':>9} {'ratio':>6}")
    for task in TASKS:
        for n_sets in (1, 3):
            together, apart = seconds(task, n_sets)
            print(
                f"{task.name:20} {task.n_folds:5} {n_sets:12} {together:7.2f} s {apart:7.2f} s"
                f" {together / apart:6.2f}"
            )


if __name__ == "__main__":
    main()
