"""An LSTM classifier stopped at a chosen accuracy: the logging policy of the digit worlds.

Small on purpose; `digits` takes any other trainer in its place.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.progress import Progress
from etips.worlds.bandit import Answers
from etips.worlds.draws import generator

State = dict[str, Tensor]

_TRAINING = 1  # stream of random numbers
_PROBE, _MARGIN = 2_000, 0.03  # a look at this many samples (standard error 0.01) spares a full one
_CHUNK = 256
_HALVINGS = 25


@dataclass(frozen=True)
class StoppedLstm:
    """Trains on a small share of the samples until the accuracy on the rest is in a band.

    Training samples come from behind the first tenth, the paper's test part. If the band is jumped
    over, weights between the last two looks are halved into it; if the share cannot reach it, the
    share is doubled. What was used is in the notes.

    Args:
        target: Arg-max accuracy wanted on the samples not trained on.
        tolerance: Half width of the band around it.
        share: Share of all samples to train on, at first.
        hidden: Size of the LSTM's state.
        learning_rate: Of Adam.
        batch: Samples a step.
        max_epochs: Passes over the training samples before the share is doubled.
        look_every: Batches between two looks at the accuracy.
    """

    target: float = 0.66
    tolerance: float = 0.01
    share: float = 0.05
    hidden: int = 64
    learning_rate: float = 1e-3
    batch: int = 32
    max_epochs: int = 30
    look_every: int = 8

    def __call__(self, labelled: Trajectories, *, seed: int, progress: Progress) -> Answers:
        """Train on part of `labelled`, whose actions are the true labels, and answer all of it."""
        if not 0 < self.share <= 0.5:
            raise SettingError("share", "must be in (0, 0.5]")
        n, rng = labelled.n_decisions, generator(seed, _TRAINING)
        order = rng.permutation(np.arange(n // 10, n))
        share, progress = self.share, _rising(progress)
        while share <= 0.5:
            size = max(1, round(share * n))
            held_out = rng.permutation(np.setdiff1d(np.arange(n), order[:size]))
            run = _Run(self, labelled, order[:size], held_out, _network(labelled, self.hidden, rng))
            epochs = run.stop_in_band(rng, progress)
            if epochs is not None:
                return run.answers(share, epochs)
            share *= 2
        rule = f"could not be stopped at an accuracy of {self.target} +/- {self.tolerance}"
        raise DataError("logging policy", rule, fix="Use more samples or another seed.")


@dataclass(frozen=True, eq=False)
class _Run:
    settings: StoppedLstm
    labelled: Trajectories
    chosen: Ints
    held_out: Ints
    network: "_Network"

    def stop_in_band(self, rng: np.random.Generator, progress: Progress) -> float | None:
        """Train until the accuracy is in the band; give the epochs used, or None if never."""
        low = self.settings.target - self.settings.tolerance
        below = _copy(self.network)
        for epochs in self._train(rng):
            accuracy = self._accuracy(self.held_out[:_PROBE])
            progress("training the logging policy", min(1.0, accuracy / low))
            if accuracy >= low - _MARGIN:
                accuracy = self._accuracy(self.held_out)
            if accuracy < low:
                below = _copy(self.network)
            elif self._in_band(accuracy) or self._halve(below):
                progress("training the logging policy", 1.0)
                return epochs
        return None

    def answers(self, share: float, epochs: float) -> Answers:
        """What the stopped network says of all samples, and how it came to be."""
        probabilities = self._probabilities(np.arange(self.labelled.n_decisions))
        right = probabilities.argmax(axis=1) == self.labelled.logged_action
        notes = {
            "logging_model": f"LSTM-{self.settings.hidden}, stopped early",
            "logging_accuracy": f"{right[self.held_out].mean():.4f}",
            "logging_share": f"{share:g}",
            "logging_samples": str(self.chosen.size),
            "logging_epochs": f"{epochs:.2f}",
        }
        return Answers(probabilities, notes)

    def _train(self, rng: np.random.Generator) -> Iterator[float]:
        """Train, pausing for a look now and then; yields the epochs done."""
        settings, label = self.settings, self.labelled.logged_action
        adam = torch.optim.Adam(self.network.parameters(), settings.learning_rate)
        per_epoch = math.ceil(self.chosen.size / settings.batch)
        done = 0
        for _ in range(settings.max_epochs):
            for samples in np.array_split(rng.permutation(self.chosen), per_epoch):
                logits = self._logits(samples)
                risk = nn.functional.cross_entropy(logits, torch.from_numpy(label[samples]))
                adam.zero_grad()
                risk.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
                adam.step()
                done += 1
                if done % settings.look_every == 0:
                    yield done / per_epoch

    def _halve(self, below: State) -> bool:
        """Search between `below` and the present weights; leaves those found, or the present."""
        above, low, high = _copy(self.network), 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            self.network.load_state_dict({k: below[k].lerp(above[k], middle) for k in above})
            accuracy = self._accuracy(self.held_out)
            if self._in_band(accuracy):
                return True
            low, high = (middle, high) if accuracy < self.settings.target else (low, middle)
        self.network.load_state_dict(above)
        return False

    def _in_band(self, accuracy: float) -> bool:
        return abs(accuracy - self.settings.target) <= self.settings.tolerance

    def _accuracy(self, samples: Ints) -> float:
        answer = self._probabilities(samples).argmax(axis=1)
        return float((answer == self.labelled.logged_action[samples]).mean())

    def _probabilities(self, samples: Ints) -> Floats:
        order = np.argsort(self.labelled.decisions().step[samples], kind="stable")  # less padding
        chunks = np.split(samples[order], range(_CHUNK, samples.size, _CHUNK))
        probabilities = np.empty((samples.size, self.labelled.n_actions))
        with torch.no_grad():
            logits = torch.cat([self._logits(chunk) for chunk in chunks])
        probabilities[order] = logits.double().softmax(1)
        return probabilities

    def _logits(self, samples: Ints) -> Tensor:
        history = self.labelled.histories(samples)
        logits: Tensor = self.network(
            torch.from_numpy(history.sequence), torch.from_numpy(history.lengths)
        )
        return logits


class _Network(nn.Module):
    """LSTM and a linear head on its state after the last step."""

    def __init__(self, n_features: int, hidden: int, n_actions: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(n_features, hidden, batch_first=True)
        self.head = nn.Linear(hidden, n_actions)

    def forward(self, steps: Tensor, lengths: Tensor) -> Tensor:
        states, _ = self.lstm(steps)  # causal: padding behind the last step changes nothing
        logits: Tensor = self.head(states[torch.arange(len(lengths)), lengths - 1])
        return logits


def _network(labelled: Trajectories, hidden: int, rng: np.random.Generator) -> _Network:
    """A fresh network, drawn by a generator of its own; torch's global one is put back."""
    local = torch.Generator().manual_seed(int(rng.integers(2**31)))
    with torch.random.fork_rng(devices=[]):
        network = _Network(labelled.sequence.shape[1], hidden, labelled.n_actions)
    bound = 1 / math.sqrt(hidden)  # torch's own choice for both layers
    for parameter in network.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=local)
    return network


def _rising(progress: Progress) -> Progress:
    """Tell only what is further than before: accuracy falls at times, and with a fresh start."""
    furthest = 0.0

    def tell(what: str, share: float) -> None:
        nonlocal furthest
        furthest = max(furthest, share)
        progress(what, furthest)

    return tell


def _copy(network: _Network) -> State:
    return {name: value.clone() for name, value in network.state_dict().items()}
