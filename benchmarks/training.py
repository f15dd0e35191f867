"""Training speed at the paper's size, beside what a careful user would write by hand.

    python -m benchmarks.training                   on the CPU: 9 networks, one a translation
    python -m benchmarks.training --device cuda     45 networks: 9 translations x 5 folds
    python -m benchmarks.training --quick           a smaller part of the data, rougher figures

Needs torch, numpy and safetensors, nothing else. The data are seeded noise of the paper's shape:
20,944 stays with up to 18 decisions (224,000 in all, 7.3 steps of history each on average), 44
features, 3 static ones, 25 actions; networks are GRU-64. By hand means: one sample a decision with
its whole history, packed sequences, batches of 128, `torch.nn.GRU`, Adam, one translation at a time.

Both train the same objective. Each is timed on a part of the data and scaled up to a whole epoch;
the two take turns, so that other work on the machine hits both, and the median counts. What a run
does once (capturing a step on the GPU) happens in a warm-up that is timed apart.
"""

import argparse
import statistics
import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.learn.objectives import translated_ips
from etips.learn.prepare import Prepared, prepare
from etips.learn.training import Settings, State, outputs_of, train
from etips.models.bundle import Bundle
from etips.models.encoders import GRU
from etips.models.network import Network

N_STAYS, MOST_DECISIONS, N_FEATURES, N_STATIC, N_ACTIONS = 20_944, 18, 44, 3, 25
HIDDEN = 64
WINDOW_BATCH = 128
TRANSLATIONS = torch.linspace(0.1, 0.9, 9)
GOALS = {"cpu": (12, 25), "cuda": (300, 1000)}
PREDICTION_GOAL = 2.0


@dataclass(frozen=True)
class Result:
    """Seconds a network and epoch, by hand and bundled, one pair a round."""

    by_hand: list[float]
    bundled: list[float]

    @property
    def ratio(self) -> float:
        return statistics.median(self.by_hand) / statistics.median(self.bundled)


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

    def run(self, n_batches: int) -> float:
        """Seconds of a whole epoch, from `n_batches` of it."""
        order = torch.randperm(len(self.length))
        begun = now(self.device)
        for number in range(n_batches):
            self.step(order[number * WINDOW_BATCH : (number + 1) * WINDOW_BATCH])
        seconds = now(self.device) - begun
        return seconds * len(self.length) / (n_batches * WINDOW_BATCH)

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


class Bundled:
    """All networks side by side through `etips.learn.training.train`."""

    def __init__(
        self,
        prepared: Prepared,
        log_propensity: torch.Tensor,
        *,
        members: int,
        share: float,
        batch_size: int,
    ) -> None:
        self.prepared, self.members, self.share = prepared, members, share
        steps = prepared.steps
        network = Network(GRU(HIDDEN), N_FEATURES, N_STATIC, N_ACTIONS)
        self.bundle = Bundle.start(network, range(members)).to(steps.device)
        times = -(-members // len(TRANSLATIONS))
        translation = TRANSLATIONS.repeat(times)[:members, None].to(steps.device)

        def objective(outputs: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
            return translated_ips(
                outputs, prepared.action[seen], prepared.loss[seen], log_propensity[seen], translation
            )

        self.objective = objective
        self.settings = Settings(epochs=1000, batch_size=batch_size, patience=1000)
        self.weight = torch.ones(members, steps.n_stays, device=steps.device)
        self.state = State.start(self.bundle)

    def run(self) -> float:
        """Seconds a network for a whole epoch, from a part of it."""
        self.state.epoch = self.state.batch = 0
        n_batches = round(self.share * -(-self.prepared.steps.n_stays // self.settings.batch_size))
        begun = now(self.prepared.steps.device)

        def stop(state: State) -> None:
            if state.batch >= n_batches:
                raise Enough

        try:
            train(
                self.bundle,
                self.prepared.steps,
                self.objective,
                weight=self.weight,
                held_out=torch.zeros_like(self.weight),
                settings=self.settings,
                state=self.state,
                keep=stop,
            )
        except Enough:
            pass
        seconds = now(self.prepared.steps.device) - begun
        return seconds / self.share / self.members


class Enough(Exception):  # noqa: N818
    """The part of the epoch that is timed is over."""


def now(device: torch.device) -> float:
    """The time, once the device has done all it was asked."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def compare(
    device: torch.device, *, members: int, batch_size: int, rounds: int, part: float
) -> tuple[Result, float]:
    """Time both in turn; also the seconds of the bundle's first, warming run."""
    data = make(N_STAYS)
    prepared = prepare(data, n_folds=1, seed=0, device=device)
    log_propensity = prepared.by_row(np.log(data.logged_propensity).astype(np.float32))
    by_hand = ByHand(prepared, log_propensity)
    bundled = Bundled(
        prepared, log_propensity, members=members, share=part, batch_size=batch_size
    )
    n_windows = max(round(part * data.n_decisions / WINDOW_BATCH / (8 if part < 1 else 16)), 10)
    by_hand.run(5)
    begun = now(device)
    bundled.run()
    warming = now(device) - begun
    pairs = [(by_hand.run(n_windows), bundled.run()) for _ in range(rounds)]
    return Result(*map(list, zip(*pairs, strict=True))), warming


def predict(device: torch.device) -> tuple[int, float]:
    """Decisions and best seconds of five for one network's outputs at all of them."""
    data = make(N_STAYS)
    steps = prepare(data, n_folds=1, seed=0, device=device).steps
    bundle = Bundle.start(Network(GRU(HIDDEN), N_FEATURES, N_STATIC, N_ACTIONS), [0]).to(device)
    times = []
    for _ in range(5):
        begun = now(device)
        outputs_of(bundle, steps)
        times.append(now(device) - begun)
    return data.n_decisions, statistics.median(times)


def verdict(figure: float, goal: float, aim: float) -> str:
    """Where a ratio stands."""
    reached = "aim reached" if figure >= aim else "goal reached" if figure >= goal else "GOAL MISSED"
    return f"goal {goal}, aim {aim}: {reached}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--members", type=int, help="networks; 9 on the CPU, 45 on the GPU")
    parser.add_argument("--batch-size", type=int, default=256, help="stays a batch")
    parser.add_argument("--threads", type=int, default=2, help="cores to use on the CPU")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a tenth of an epoch, three rounds")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = torch.device(options.device)
    members = options.members or (9 if options.device == "cpu" else 45)
    rounds = 3 if options.quick else options.rounds
    part = 0.1 if options.quick else 0.3 if options.device == "cpu" else 1.0
    result, warming = compare(
        device, members=members, batch_size=options.batch_size, rounds=rounds, part=part
    )
    where = torch.cuda.get_device_name() if options.device == "cuda" else f"{options.threads} cores"
    print(f"{where}; {members} networks; batches of {options.batch_size} stays; {rounds} rounds")
    print(f"first run of the bundle       {warming:9.3f} s")
    print(f"by hand, a network and epoch  {statistics.median(result.by_hand):9.4f} s")
    print(f"bundled, a network and epoch  {statistics.median(result.bundled):9.4f} s")
    print(f"ratio                         {result.ratio:9.1f}   {verdict(result.ratio, *GOALS[options.device])}")
    n_decisions, seconds = predict(device)
    reached = "reached" if seconds < PREDICTION_GOAL else "MISSED"
    print(f"prediction of {n_decisions:,} decisions {seconds:7.3f} s   goal {PREDICTION_GOAL} s: {reached}")


if __name__ == "__main__":
    main()
