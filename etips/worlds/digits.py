"""The paper's two MNIST tasks as logs: count the zeros of a sequence, read a digit row by row."""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from etips.data.coded import Coded
from etips.data.decisions import NO_ACTION, Ints
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.progress import Progress, no_progress
from etips.worlds.bandit import Classify, Logging, to_bandit
from etips.worlds.classifier import StoppedLstm
from etips.worlds.draws import generator
from etips.worlds.shipped import read_shipped
from etips.worlds.world_registry import Simulation

N_ZEROS, N_ROWS = 10_000, 70_000
"""Samples of the two tasks."""

LOGGING_POLICY = StoppedLstm()
"""Stopped at an accuracy of 0.66, as the paper has it."""

_IMAGES = 0  # stream of random numbers
_SIDE = 28


def labelled_zeros(*, n: int | None = None, seed: int = 0) -> Trajectories:
    """The sequences of `zeros` with their true labels as actions, each of loss 0."""
    images, digit = _mnist()
    size = _size(n, N_ZEROS)
    label, lengths = (values[:size] for values in _labels_and_lengths())
    zero, other = np.flatnonzero(digit == 0), np.flatnonzero(digit != 0)
    rng, code = generator(seed, _IMAGES), []
    for n_zeros, length in zip(label, lengths, strict=True):
        shown = rng.choice(zero, n_zeros, replace=False)
        rest = rng.choice(other, length - n_zeros, replace=False)
        code.append(rng.permutation(np.concatenate([shown, rest])))
    table = images.reshape(len(images), -1)
    sequence = Coded(table, np.concatenate(code).astype(np.int32), 1 / 255)
    return _labelled("digits-zeros", sequence, lengths, label, n_actions=3)


def labelled_rows(*, n: int | None = None, seed: int = 0) -> Trajectories:  # noqa: ARG001
    """The images of `rows` with their true labels as actions, each of loss 0.

    They come in the official order, whatever the seed.
    """
    images, digit = _mnist()
    size = _size(n, N_ROWS)
    code = np.arange(size * _SIDE, dtype=np.int32)
    sequence = Coded(images.reshape(-1, _SIDE), code, 1 / 255)
    lengths = np.full(size, _SIDE, np.int64)
    return _labelled("digits-rows", sequence, lengths, digit[:size], n_actions=10)


def _log(
    labelled: Callable[..., Trajectories],
    *,
    n: int | None = None,
    logging: Logging = "sampled",
    seed: int = 0,
    train: Classify = LOGGING_POLICY,
    progress: Progress = no_progress,
) -> Trajectories:
    """One decision a sample, at its last step, seen with it (`lag=0`).

    Args:
        labelled: Gives the samples with their true labels as actions.
        n: Only the first `n` samples.
        logging: Actions drawn from the logging policy (the paper), or its likeliest (the authors).
        seed: Of the images, the logging policy and the actions; labels and lengths never change.
        train: Trains the logging policy.
        progress: Given how far it is.
    """
    samples = labelled(n=n, seed=seed)
    answers = train(samples, seed=seed, progress=progress)
    return to_bandit(samples, answers, logging=logging, seed=seed)


zeros = partial(_log, labelled_zeros)
"""Count the zeros: 10,000 sequences of 3 to 32 images of which 0, 1 or 2 show the digit 0."""

rows = partial(_log, labelled_rows)
"""Read a digit row by row: 70,000 images, 28 steps of 28 pixels each, which of ten digits is it?"""


def simulate_zeros(wanted: Simulation) -> Trajectories:
    """`zeros`, as the registry of worlds asks for it."""
    return zeros(
        n=wanted.n_stays, logging=wanted.logging, seed=wanted.seed, progress=wanted.progress
    )


def simulate_rows(wanted: Simulation) -> Trajectories:
    """`rows`, as the registry of worlds asks for it."""
    return rows(
        n=wanted.n_stays, logging=wanted.logging, seed=wanted.seed, progress=wanted.progress
    )


def _labels_and_lengths() -> tuple[Ints, Ints]:
    """Labels and lengths of `zeros` as the authors drew them: NumPy's legacy generator, seed 0.

    The legacy generator is frozen by NumPy, so these numbers stand. The first draw is their shuffle
    of the image pool.
    """
    legacy = np.random.RandomState(0)  # the very generator they used
    legacy.permutation(N_ROWS)
    label = legacy.randint(0, 3, size=N_ZEROS)
    lengths = np.clip(np.round(legacy.normal(20, 5, N_ZEROS)), 3, 32)
    return label.astype(np.int64), lengths.astype(np.int64)


def _labelled(
    task: str, sequence: Coded, lengths: Ints, label: Ints, *, n_actions: int
) -> Trajectories:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    last, width = offsets[1:] - 1, sequence.table.shape[1]
    action = np.full(offsets[-1], NO_ACTION)
    loss = np.full(offsets[-1], np.nan)
    action[last], loss[last] = label, 0.0
    schema = Schema(
        sequence=tuple(f"{'column' if width == _SIDE else 'pixel'}_{i}" for i in range(width)),
        n_actions=n_actions,
        lag=0,
        provenance={
            "world": task,
            "source": "MNIST (LeCun and Cortes; CC BY-SA 3.0)",
            "loss": "1 if the action is not the label",
        },
    )
    return Trajectories(sequence, offsets, schema, action=action, loss=loss)


@cache
def _mnist() -> tuple[NDArray[np.uint8], Ints]:
    """All 70,000 images, official order, training part first, and their digits."""
    train, train_digit, test, test_digit = read_shipped(
        "mnist.npz", "x_train", "y_train", "x_test", "y_test"
    )
    images = np.concatenate([train, test])
    images.flags.writeable = False  # one copy serves everybody
    return images, np.concatenate([train_digit, test_digit]).astype(np.int64)


def _size(n: int | None, most: int) -> int:
    if n is None:
        return most
    if not 1 <= n <= most:
        raise SettingError("n", f"must be in 1..{most}")
    return n
