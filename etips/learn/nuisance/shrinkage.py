"""How much of what networks learned beyond plain means is kept, fitted on stays not learned from.

A network that fits noise is worse than the plain frequencies of the actions, or the mean loss of
each. So its outputs are `centre + share * (output - start)`: `start` is where it began, the plain
means of the stays that it learned from. A share of 0 is the plain means, 1 the network as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Bools, Floats, Ints
from etips.learn.fitting.crossfit import out_of_fold, where_stopped
from etips.learn.fitting.prepare import Prepared
from etips.models.bundle import Bundle

MOST = 2.0
"""Largest share: networks that were stopped early may have learned too little of what there is."""

_GOLDEN = (5**0.5 - 1) / 2
_NARROWINGS = 14  # of an interval of 2, to a few thousandths

_LEAST_KEPT = 0.01  # of the differences between the mean losses of actions

_AT_ONCE = 8192  # decisions; all of a large log at once take two to three times as long

FEWEST_PAIRS = 100
"""Decisions that two networks did not learn from; with fewer the mean is not looked at."""


class Target(Protocol):
    """What outputs are held against."""

    centre: Tensor
    """Outputs that stand for knowing nothing, shape (K,)."""

    def each_loss(self, outputs: Tensor, rows: Tensor) -> Tensor:
        """Loss of the mean answer of m networks (m, n, K) at decisions `rows`, shape (n,)."""

    def shift(self, outputs: Tensor) -> Tensor:
        """What to add to the outputs (n, K) of all decisions so that their mean is right, (K,)."""


@dataclass(frozen=True, eq=False)
class Shrunken:
    """Networks after shrinkage.

    Args:
        alone: Each so that it is right when it answers alone.
        together: Each so that their mean is right.
        share: Of what they learned that is kept, where one answers alone.
        outputs: Of `alone`, out of fold, in float64, shape (n_decisions, K).
        strict: The same about the start of each network, which knows nothing of its fold, where
            `outputs` are about that of all stays.
    """

    alone: Bundle
    together: Bundle
    share: float
    outputs: Tensor
    strict: Tensor


def shrink(
    prepared: Prepared, bundle: Bundle, start: Tensor, target: Target, *, fit: bool = True
) -> Shrunken:
    """Keep of each network what holds for stays that it did not learn from.

    Args:
        prepared: The stays.
        bundle: One network a fold.
        start: Where they started, shape (J, K).
        target: What outputs are held against.
        fit: Otherwise the networks are left as they are.
    """
    outputs = out_of_fold(bundle, prepared, lambda said, _: said)[0].double()
    if not fit:
        return Shrunken(bundle, bundle, 1.0, outputs, outputs)
    stay, device = prepared.data.decisions().stay, outputs.device
    start, centre = start.double().to(device), target.centre.double().to(device)
    fold = torch.from_numpy(prepared.folds.fold[stay]).to(device)
    beyond = outputs - start[fold]
    alone, mean = fit_shares(prepared, beyond, _pairs(prepared, bundle, start, beyond), target)

    def shrunken(share: float) -> tuple[Bundle, Tensor]:
        shifted = centre + target.shift(centre + share * beyond)
        return bundle.shrink(start, share, shifted), shifted + share * beyond

    (own, said), (together, _) = shrunken(alone), shrunken(mean)
    strict = start[fold] + alone * beyond
    return Shrunken(own, together, alone, said, strict + target.shift(strict))


def fit_shares(
    prepared: Prepared, beyond: Tensor, pairs: tuple[Tensor, Tensor], target: Target
) -> tuple[float, float]:
    """How much to keep of what was learned, where one answers alone and where all answer together.

    Args:
        prepared: The stays.
        beyond: What was learned beyond the start, out of fold, shape (n_decisions, K).
        pairs: The same by two that did not learn from some decisions, (2, n, K), and which (n,).
        target: What outputs are held against.
    """
    centre = target.centre.double().to(beyond.device)

    def loss_of(said: Tensor, rows: Tensor, share: float) -> float:
        some = pieces(rows)
        each = [target.each_loss(centre + share * said[:, own], rows[own]) for own in some]
        return float(torch.cat(each).mean())

    rows = torch.from_numpy(np.flatnonzero(_unlearned(prepared))).to(beyond.device)
    alone = 1.0
    if len(rows):
        alone = best_share(partial(loss_of, beyond[rows][None], rows))
    both, rows = pairs
    if len(rows) < FEWEST_PAIRS:
        return alone, alone
    single = best_share(lambda share: sum(loss_of(each[None], rows, share) for each in both) / 2)
    pair = best_share(partial(loss_of, both, rows))
    return alone, share_of_mean(alone, single, pair, prepared.folds.n_networks)


def pieces(values: Tensor) -> list[slice]:
    """Neighbours along the first axis: few on a CPU, so that what is made of them stays near it."""
    size = _AT_ONCE if values.device.type == "cpu" else max(len(values), 1)
    return [slice(start, start + size) for start in range(0, len(values), size)]


def _pairs(
    prepared: Prepared, bundle: Bundle, start: Tensor, beyond: Tensor
) -> tuple[Tensor, Tensor]:
    """What two networks learned of decisions that neither learned from, (2, n, K), and of which."""
    if prepared.folds.n_networks < 2 or not prepared.folds.held_out.any():
        return beyond[None, :0], torch.zeros(0, dtype=torch.long)
    second, stopped = where_stopped(bundle, prepared, lambda said, _: said)
    rows = torch.from_numpy(np.flatnonzero(stopped)).to(beyond.device)
    stay = torch.from_numpy(prepared.data.decisions().stay[stopped]).to(beyond.device)
    network = prepared.folds.held_out.to(beyond.device)[:, stay].argmax(0)
    other = second[0].double()[rows] - start[network]
    return torch.stack([beyond[rows], other]), rows


def best_share(loss: Callable[[float], float]) -> float:
    """Where a mean loss is least among shares from 0 to `MOST`; 0 unless another is better.

    Args:
        loss: Mean loss at a share; it falls, then rises.
    """
    low, high = 0.0, MOST
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(_NARROWINGS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = loss(right)
    middle = (low + high) / 2
    return middle if loss(middle) < loss(0.0) else 0.0


def share_of_mean(alone: float, single: float, pair: float, n_networks: int) -> float:
    """The share for the mean of some networks, from that of one and that of two.

    Part of what a network learned too boldly is its own noise, and that part falls as one over the
    number of networks that answer together: 1 / share = a + b / number.

    Args:
        alone: Share of single networks, from all stays.
        single: The same from those stays that two networks did not learn from.
        pair: Share of the mean of the two, from the same stays.
        n_networks: How many answer together.
    """
    if min(alone, single, pair) <= 0 or n_networks < 2:
        return alone
    own_noise = 2 * max(1 / single - 1 / pair, 0.0)
    inverse = 1 / single - own_noise * (1 - 1 / n_networks)
    return min(alone / single / max(inverse, 1 / MOST), MOST)


def _unlearned(prepared: Prepared) -> Bools:
    """Decisions of stays that the network which answers for them did not learn from, (n,)."""
    stay = prepared.data.decisions().stay
    weight = prepared.folds.weight.cpu().numpy()
    return np.asarray(weight[prepared.folds.fold[stay], stay] == 0)


def learned_counts(prepared: Prepared) -> Floats:
    """How often each network learns from each decision, 0 or 1, shape (n_networks, n_decisions)."""
    weight = prepared.folds.weight.cpu().numpy().astype(np.float64)
    return weight[:, prepared.data.decisions().stay]


def log_frequencies(action: Tensor, n_actions: int, counts: Tensor | None = None) -> Tensor:
    """Logarithm of how often each action was taken; one that never was counts a K-th of once.

    Args:
        action: Shape (n,).
        n_actions: K.
        counts: How often each decision counts, shape (J, n); once if left out.

    Returns:
        Shape (K,), or (J, K).
    """
    if counts is None:
        totals = torch.bincount(action, minlength=n_actions).double()
    else:  # sums of whole numbers, exact in any order; a table of who took what takes far longer
        each = [torch.bincount(action, own, n_actions) for own in counts.double()]
        totals = torch.stack(each)
    return ((totals + 1 / n_actions) / (totals.sum(-1, keepdim=True) + 1)).log()


def action_means(loss: Floats, action: Ints, n_actions: int, counts: Floats) -> Floats:
    """Mean loss of each action, drawn to the mean of all as far as chance explains the differences.

    Args:
        loss: Shape (n,).
        action: Shape (n,).
        n_actions: K.
        counts: How often each decision counts, shape (J, n).

    Returns:
        Shape (J, K).
    """
    taken = np.eye(n_actions)[action]
    size = counts @ taken
    total = np.maximum(size.sum(1, keepdims=True), 1e-12)
    mean = (counts @ loss)[:, None] / total
    own = np.divide(counts @ (taken * loss[:, None]), size, out=mean + 0 * size, where=size > 0)
    square = (counts @ loss**2)[:, None]
    within = np.maximum(square - (size * own**2).sum(1, keepdims=True), 0) / total
    spread = (size * (own - mean) ** 2).sum(1, keepdims=True)
    chance = ((size > 0).sum(1, keepdims=True) - 1) * within
    even = np.maximum(total - (size**2).sum(1, keepdims=True) / total, 1e-12)
    least = _LEAST_KEPT * within * n_actions / total  # so that there is a least one, and no tie
    between = np.maximum(np.maximum(spread - chance, 0) / even, least)
    told, all_of_it = size * between, size * between + within
    kept = np.divide(told, all_of_it, out=0 * size, where=all_of_it > 0)
    return np.asarray(mean + kept * (own - mean))
