"""Training speed at the paper's size, beside what a careful user would write by hand.

    python -m benchmarks.training                   on the CPU: 9 networks, one a translation
    python -m benchmarks.training --device cuda     45 networks: 9 translations x 5 folds
    python -m benchmarks.training --quick           a smaller part of the data, rougher figures
    python -m benchmarks.training --check --device cuda    do GPU and CPU learn the same?
    python -m benchmarks.training --device cuda --precision bfloat16    products in bfloat16

Needs torch, numpy and safetensors, nothing else. The data are seeded noise of the paper's shape:
20,944 stays with up to 18 decisions (224,000 in all, 7.3 steps of history each on average), 44
features, 3 static ones, 25 actions; networks are GRU-64. By hand means: one sample a decision with
its whole history, packed sequences, batches of 128, `torch.nn.GRU`, Adam, one translation after
another.

Both train the same objective and take turns, so that other work on the machine hits both; medians
count. On the CPU each is timed on a part of the data and scaled up; beside the time on the clock
stands that of the processor, which a neighbour disturbs less. Where others use the machine too, set
OMP_WAIT_POLICY=passive: threads that spin while they wait for each other spoil both figures. On the
GPU the first two epochs, in which steps are captured, are timed apart.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.learn.fitting.prepare import Prepared, prepare
from etips.learn.training.loop import train
from etips.learn.training.objectives import translated_ips
from etips.learn.training.settings import Precision, Settings
from etips.models.answers import answer_decisions, outputs_at
from etips.models.bundle import Bundle
from etips.models.encoders.gru import GRU
from etips.models.network import Network

N_STAYS, MOST_DECISIONS, N_FEATURES, N_STATIC, N_ACTIONS = 20_944, 18, 44, 3, 25
HIDDEN = 64
WINDOW_BATCH = 128
TRANSLATIONS = torch.linspace(0.1, 0.9, 9)
GOALS = {"cpu": (12, 25), "cuda": (300, 1000)}
PREDICTION_GOAL = 2.0
WARMING = 2  # epochs

Times = NDArray[np.float64]
"""Seconds on the clock and of the processor, shape (2,)."""


def now(device: torch.device) -> Times:
    """The time, once the device has done all it was asked."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return np.array([time.perf_counter(), time.process_time()])


def make(n_stays: int, seed: int = 0) -> Trajectories:
    """Stays of the paper's lengths: a fifth have all 18 decisions, the others 1 to 17 alike."""
    rng = np.random.default_rng(seed)
    n_decisions = rng.integers(1, MOST_DECISIONS, n_stays)
    n_decisions[rng.random(n_stays) < 0.19] = MOST_DECISIONS
    offsets = np.concatenate([[0], np.cumsum(n_decisions + 1)])
    total = int(offsets[-1])
    return Trajectories(
        sequence=rng.normal(size=(total, N_FEATURES)).astype(np.float32),
        offsets=offsets,
        schema=Schema(
            sequence=tuple(f"x{i}" for i in range(N_FEATURES)),
            static=tuple(f"s{i}" for i in range(N_STATIC)),
            n_actions=N_ACTIONS,
        ),
        action=rng.integers(0, N_ACTIONS, total),
        loss=(rng.random(total) < 0.5).astype(np.float64),
        static=rng.normal(size=(n_stays, N_STATIC)).astype(np.float32),
        propensity=rng.uniform(0.02, 0.3, total),
    )


class ByHand:
    """One network on expanding windows, as one would write it from the paper."""

    def __init__(self, prepared: Prepared, log_propensity: torch.Tensor) -> None:
        self.device = prepared.steps.device
        stay, step = prepared.data.decisions()
        self.features, self.static = prepared.steps.plain, prepared.steps.static
        self.start = torch.from_numpy(prepared.data.offsets[stay]).to(self.device)
        self.length = torch.from_numpy(step.copy())  # packing wants lengths on the CPU
        self.stay = torch.from_numpy(stay.copy()).to(self.device)
        seen = torch.from_numpy(prepared.seen).to(self.device)
        self.action, self.loss = prepared.action[seen], prepared.loss[seen]
        self.log_propensity = log_propensity[seen]
        torch.manual_seed(0)
        self.gru = nn.GRU(N_FEATURES, HIDDEN, batch_first=True).to(self.device)
        self.head = nn.Linear(HIDDEN + N_STATIC, N_ACTIONS).to(self.device)
        self.optimiser = torch.optim.Adam(
            [*self.gru.parameters(), *self.head.parameters()], lr=1e-3
        )

    def run(self, n_batches: int) -> Times:
        """Time a decision, from some batches."""
        order = torch.randperm(len(self.length))
        begun = now(self.device)
        for number in range(n_batches):
            self.step(order[number * WINDOW_BATCH : (number + 1) * WINDOW_BATCH])
        return (now(self.device) - begun) / (n_batches * WINDOW_BATCH)

    def step(self, chosen: torch.Tensor) -> None:
        lengths, chosen = self.length[chosen], chosen.to(self.device)
        window = torch.arange(int(lengths.max()), device=self.device)
        last = lengths.to(self.device)[:, None] - 1
        rows = self.start[chosen][:, None] + torch.minimum(window, last)
        packed = nn.utils.rnn.pack_padded_sequence(
            self.features[rows], lengths, batch_first=True, enforce_sorted=False
        )
        _, state = self.gru(packed)
        logits = self.head(torch.cat([state[0], self.static[self.stay[chosen]]], dim=1))
        chosen_log = logits.log_softmax(1).gather(1, self.action[chosen][:, None]).squeeze(1)
        weight = (chosen_log - self.log_propensity[chosen]).exp()
        risk = ((self.loss[chosen] - 0.5) * weight).mean()
        self.optimiser.zero_grad()
        risk.backward()
        self.optimiser.step()


def bundled(
    prepared: Prepared,
    log_propensity: torch.Tensor,
    *,
    members: int,
    batch_size: int,
    epochs: int,
    report: Callable[[object], None] | None = None,
    dropout: float = 0.0,
    precision: Precision = "float32",
) -> Bundle:
    """All networks side by side through `etips.learn.training.loop.train`."""
    steps = prepared.steps
    network = Network(GRU(HIDDEN), N_FEATURES, N_STATIC, N_ACTIONS)
    times = -(-members // len(TRANSLATIONS))
    translation = TRANSLATIONS.repeat(times)[:members, None].to(steps.device)

    def objective(outputs: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        logged = prepared.action[seen], prepared.loss[seen], log_propensity[seen]
        return translated_ips(outputs, *logged, translation)

    weight = torch.ones(members, steps.n_stays, device=steps.device)
    trained, _ = train(
        Bundle.start(network, range(members)).to(steps.device),
        steps,
        objective,
        weight=weight,
        held_out=torch.zeros_like(weight),
        settings=Settings(
            epochs=epochs, batch_size=batch_size, dropout=dropout, precision=precision
        ),
        report=report,
    )
    return trained


def compare(
    device: torch.device,
    *,
    members: int,
    batch_size: int,
    rounds: int,
    n_stays: int,
    precision: Precision,
) -> tuple[Times, Times, Times]:
    """Times a network and epoch, by hand and bundled; also those of the bundle's first epochs."""
    data = make(n_stays)
    prepared = prepare(data, n_folds=1, seed=0, device=device)
    log_propensity = prepared.by_row(np.log(data.logged_propensity).astype(np.float32))
    by_hand = ByHand(prepared, log_propensity)
    by_hand.run(5)
    n_windows = 200 if device.type == "cuda" else 40
    hand, bundle, begun = [], [], now(device)

    def turn(_: object) -> None:
        """Called at the end of an epoch of the bundle: now it is the other's turn."""
        nonlocal begun
        bundle.append(now(device) - begun)
        hand.append(by_hand.run(n_windows))
        begun = now(device)

    bundled(
        prepared,
        log_propensity,
        members=members,
        batch_size=batch_size,
        epochs=WARMING + rounds,
        report=turn,
        precision=precision,
    )
    share = n_stays / N_STAYS
    return (
        np.median(hand[WARMING:], axis=0) * data.n_decisions / share,
        np.median(bundle[WARMING:], axis=0) / share / members,
        np.sum(bundle[:WARMING], axis=0),
    )


def check(device: torch.device, precision: Precision) -> None:
    """Train the same networks on the CPU and on the device, and say how far they end apart.

    On the CPU it is always in float32.
    """
    data = make(1000)
    found = []
    for place in (torch.device("cpu"), device):
        prepared = prepare(data, n_folds=1, seed=0, device=place)
        log_propensity = prepared.by_row(np.log(data.logged_propensity).astype(np.float32))
        sizes = {"members": 5, "batch_size": 96, "epochs": 3, "dropout": 0.1}
        own = precision if place.type == "cuda" else "float32"
        trained = bundled(prepared, log_propensity, **sizes, precision=own)
        found.append(trained.to("cpu").parameters)
    for name, value in found[0].items():
        gap, size = (value - found[1][name]).abs().max(), value.abs().max()
        print(f"{name:20} largest value {size:8.4f}, largest difference {gap:10.2e}")


def predict(device: torch.device) -> tuple[int, float]:
    """Decisions and median seconds of five for one network's outputs at all of them."""
    data = make(N_STAYS)
    steps = prepare(data, n_folds=1, seed=0, device=device).steps
    bundle = Bundle.start(Network(GRU(HIDDEN), N_FEATURES, N_STATIC, N_ACTIONS), [0]).to(device)
    times = []
    for _ in range(5):
        begun = now(device)
        answer_decisions(steps, lambda batch, _: (outputs_at(bundle, batch, steps),), axis=1)
        times.append(now(device)[0] - begun[0])
    return data.n_decisions, statistics.median(times)


def verdict(figure: float, goal: float, aim: float) -> str:
    """Where a ratio stands."""
    reached = "goal reached" if figure >= goal else "GOAL MISSED"
    return f"goal {goal}, aim {aim}: {'aim reached' if figure >= aim else reached}"


def parser() -> argparse.ArgumentParser:
    """What the command line takes."""
    known = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    known.add_argument("--members", type=int, help="networks; 9 on the CPU, 45 on the GPU")
    known.add_argument("--batch-size", type=int, help="stays; 256 on the CPU, 512 on the GPU")
    known.add_argument("--threads", type=int, default=2, help="cores to use on the CPU")
    known.add_argument("--rounds", type=int, default=5)
    known.add_argument("--precision", default="float32", choices=get_args(Precision))
    known.add_argument("--quick", action="store_true", help="fewer stays and rounds")
    known.add_argument("--check", action="store_true", help="compare the device with the CPU")
    return known


def main() -> None:
    options = parser().parse_args()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    if options.check:
        check(device, options.precision)
        return
    members = options.members or (9 if options.device == "cpu" else 45)
    batch_size = options.batch_size or (256 if options.device == "cpu" else 512)
    n_stays = N_STAYS // (20 if options.quick else 5) if options.device == "cpu" else N_STAYS
    by_hand, bundle, warming = compare(
        device,
        members=members,
        batch_size=batch_size,
        rounds=3 if options.quick else options.rounds,
        n_stays=n_stays,
        precision=options.precision,
    )
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"{options.threads} cores"
    size = f"{n_stays:,} stays in batches of {batch_size}"
    print(f"{where}; {members} networks; {size}; {options.precision}")
    print(f"first {WARMING} epochs of the bundle {warming[0]:9.3f} s")
    print("a network and epoch      by hand     bundled   ratio")
    for name, hand, own in zip(("on the clock", "of the processor"), by_hand, bundle, strict=True):
        standing = verdict(hand / own, *GOALS[options.device])
        print(f"{name:18} {hand:11.4f} s {own:9.5f} s {hand / own:7.1f}   {standing}")
        if options.device == "cuda":
            break
    n_decisions, seconds = predict(device)
    standing = "goal reached" if seconds < PREDICTION_GOAL else "GOAL MISSED"
    print(f"outputs at {n_decisions:,} decisions {seconds:9.4f} s  {PREDICTION_GOAL} s: {standing}")


if __name__ == "__main__":
    main()
