"""What sets of networks, one a fold, say of the stays they did not learn from."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Bools, Ints
from etips.learn.fitting.prepare import Prepared
from etips.learn.training import memory
from etips.learn.training.parallel import n_workers, shared, side_by_side
from etips.models.answers import Ask, answer_decisions, blank, outputs_at
from etips.models.batches import Batch, StepTensors
from etips.models.bundle import Bundle

Readout = Callable[[Tensor, Tensor], Tensor]
"""What to keep of outputs (sets, n, K) at rows (n,)."""

FEWEST = 50_000
"""Decisions times sets from which asking is worth processes."""


def out_of_fold(bundle: Bundle, prepared: Prepared, readout: Readout) -> Tensor:
    """What each set says of every decision, by the network that did not learn from its stay.

    Args:
        bundle: Networks, set by set.
        prepared: The stays.
        readout: What to keep, so that no more than that is held in memory.
    """
    fold = prepared.folds.fold
    return _ask(bundle, prepared, readout, [fold == k for k in range(prepared.folds.n_networks)])


def where_stopped(bundle: Bundle, prepared: Prepared, readout: Readout) -> tuple[Tensor, Bools]:
    """What each set says of the decisions that a network stopped by, and which these are.

    Cross-fitted, that is a second network that did not learn from them.

    Args:
        bundle: Networks, set by set.
        prepared: The stays.
        readout: As in `out_of_fold`.
    """
    stops: Bools = prepared.folds.held_out.cpu().numpy().astype(bool)
    stay = prepared.data.decisions().stay
    asked: Bools = np.asarray(stops.any(0))
    return _ask(bundle, prepared, readout, list(stops)), asked[stay]


def _is_alone(steps: StepTensors, n_networks: int) -> bool:
    """Whether this process asks by itself."""
    return steps.device.type != "cpu" or steps.n_decisions * n_networks < FEWEST


def _ask(bundle: Bundle, prepared: Prepared, readout: Readout, asked: Sequence[Bools]) -> Tensor:
    """What sets say of decisions, network k of each of the stays in `asked[k]`; else zeros."""
    n_networks = prepared.folds.n_networks
    n_sets = bundle.n_members // n_networks
    each = [
        bundle.select([k * n_networks + fold for k in range(n_sets)]) for fold in range(n_networks)
    ]

    def ask(batch: Batch, fold: int) -> tuple[Tensor, ...]:
        return (readout(outputs_at(each[fold], batch, prepared.steps), batch.seen),)

    groups = [np.flatnonzero(stays) for stays in asked]
    at_once = memory.stays_at_once(bundle.network, prepared.steps, n_sets)
    steps = prepared.steps
    if _is_alone(steps, n_sets):
        return answer_decisions(steps, ask, groups=groups, batch_size=at_once, axis=1)[0]
    most = memory.askers(bundle.network, steps, n_sets, at_once)
    return _ask_at_once(steps, ask, groups, at_once, most)


def _ask_at_once(
    steps: StepTensors, ask: Ask, groups: Sequence[Ints], batch_size: int, most: int
) -> Tensor:
    """The same, batches at the same time, each by a process that writes where all can read.

    Args:
        steps: The stays.
        ask: Asks networks, as in `answer_decisions`.
        groups: Stays that are asked together.
        batch_size: Stays at once.
        most: Processes that memory holds.
    """
    each = ((batch, n) for n, stays in enumerate(groups) for batch in steps.batches(stays, 1))
    with torch.no_grad():
        (some,) = ask(*next(each))  # tells the shape
    parts = [(own, n) for n, stays in enumerate(groups) for own in steps.parts(stays, batch_size)]
    answers = shared(blank(some, 1, steps.n_decisions))
    _ = steps.decision_of_row  # before there are processes, which would all find it anew
    n_parts = max(min(n_workers(), most, len(parts)), 1)

    def answer(first: int, _: int) -> None:
        for part, number in parts[first::n_parts]:
            answer_decisions(
                steps,
                lambda batch, _, number=number: ask(batch, number),  # type: ignore[misc]
                groups=[part],
                batch_size=batch_size,
                axis=1,
                answers=(answers,),
            )

    with side_by_side([partial(answer, first) for first in range(n_parts)]) as at_work:
        at_work(0)
    return answers
