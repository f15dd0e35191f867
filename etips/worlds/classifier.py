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
        share, furthest = self.share, 0.0

        def rising(accuracy: float) -> None:  # it falls at times, and with a fresh start
            nonlocal furthest
            furthest = max(furthest, min(1.0, accuracy))
            progress("training the logging policy", furthest)

        while share <= 0.5:
            chosen = order[: max(1, round(share * n))]
            held_out = rng.permutation(np.setdiff1d(np.arange(n), chosen))
            network = _Network.fresh(labelled, self.hidden, rng)
            low, below = self.target - self.tolerance, network.copy()
            for epochs in self._train(network, labelled, chosen, rng):
                accuracy = network.accuracy(labelled, held_out[:_PROBE])
                rising(accuracy / low)
                if accuracy >= low - _MARGIN:
                    accuracy = network.accuracy(labelled, held_out)
                if accuracy < low:
                    below = network.copy()
                elif self._in_band(accuracy) or self._halve(network, labelled, held_out, below):
                    rising(1.0)
                    notes = {
                        "logging_share": f"{share:g}",
                        "logging_samples": str(chosen.size),
                        "logging_epochs": f"{epochs:.2f}",
                    }
                    return self._answers(network, labelled, held_out, notes)
            share *= 2
        rule = f"could not be stopped at an accuracy of {self.target} +/- {self.tolerance}"
        raise DataError("logging policy", rule, fix="Use more samples or another seed.")

    def _answers(
        self, network: "_Network", labelled: Trajectories, held_out: Ints, notes: dict[str, str]
    ) -> Answers:
        """What the stopped network says of all samples, and how it came to be."""
        probabilities = network.probabilities(labelled, np.arange(labelled.n_decisions))
        right = probabilities.argmax(axis=1) == labelled.logged_action
        model = {
            "logging_model": f"LSTM-{self.hidden}, stopped early",
            "logging_accuracy": f"{right[held_out].mean():.4f}",
        }
        return Answers(probabilities, {**model, **notes})

    def _train(
        self, network: "_Network", labelled: Trajectories, chosen: Ints, rng: np.random.Generator
    ) -> Iterator[float]:
        """Train, pausing for a look now and then; yields the epochs done."""
        adam = torch.optim.Adam(network.parameters(), self.learning_rate)
        per_epoch, done = math.ceil(chosen.size / self.batch), 0
        for _ in range(self.max_epochs):
            for samples in np.array_split(rng.permutation(chosen), per_epoch):
                label = torch.from_numpy(labelled.logged_action[samples])
                risk = nn.functional.cross_entropy(network.logits(labelled, samples), label)
                adam.zero_grad()
                risk.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(network.parameters(), 1.0)
                adam.step()
                done += 1
                if done % self.look_every == 0:
                    yield done / per_epoch

    def _halve(
        self, network: "_Network", labelled: Trajectories, held_out: Ints, below: State
    ) -> bool:
        """Search between `below` and the present weights; leaves those found, or the present."""
        above, low, high = network.copy(), 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            network.load_state_dict({k: below[k].lerp(above[k], middle) for k in above})
            accuracy = network.accuracy(labelled, held_out)
            if self._in_band(accuracy):
                return True
            low, high = (middle, high) if accuracy < self.target else (low, middle)
        network.load_state_dict(above)
        return False

    def _in_band(self, accuracy: float) -> bool:
        return abs(accuracy - self.target) <= self.tolerance


class _Network(nn.Module):
    """LSTM and a linear head on its state after the last step."""

    def __init__(self, n_features: int, hidden: int, n_actions: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(n_features, hidden, batch_first=True)
        self.head = nn.Linear(hidden, n_actions)

    @classmethod
    def fresh(cls, labelled: Trajectories, hidden: int, rng: np.random.Generator) -> "_Network":
        """One drawn by a generator of its own; torch's global one is put back."""
        local = torch.Generator().manual_seed(int(rng.integers(2**31)))
        with torch.random.fork_rng(devices=[]):
            network = cls(labelled.sequence.shape[1], hidden, labelled.n_actions)
        bound = 1 / math.sqrt(hidden)  # torch's own choice for both layers
        for parameter in network.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=local)
        return network

    def copy(self) -> State:
        """Its weights as they are now."""
        return {name: value.clone() for name, value in self.state_dict().items()}

    def forward(self, steps: Tensor, lengths: Tensor) -> Tensor:
        states, _ = self.lstm(steps)  # causal: padding behind the last step changes nothing
        logits: Tensor = self.head(states[torch.arange(len(lengths)), lengths - 1])
        return logits

    def logits(self, labelled: Trajectories, samples: Ints) -> Tensor:
        """Of some samples, shape (n, n_actions)."""
        history = labelled.histories(samples)
        logits: Tensor = self(torch.from_numpy(history.sequence), torch.from_numpy(history.lengths))
        return logits

    def probabilities(self, labelled: Trajectories, samples: Ints) -> Floats:
        """Of some samples, shape (n, n_actions)."""
        order = np.argsort(labelled.decisions().step[samples], kind="stable")  # less padding
        chunks = np.split(samples[order], range(_CHUNK, samples.size, _CHUNK))
        probabilities = np.empty((samples.size, labelled.n_actions))
        with torch.no_grad():
            logits = torch.cat([self.logits(labelled, chunk) for chunk in chunks])
        probabilities[order] = logits.double().softmax(1)
        return probabilities

    def accuracy(self, labelled: Trajectories, samples: Ints) -> float:
        """Share of samples whose likeliest label is the right one."""
        likeliest = self.probabilities(labelled, samples).argmax(axis=1)
        return float((likeliest == labelled.logged_action[samples]).mean())
