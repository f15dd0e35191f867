"""What sets of networks, one a fold, say of the stays they did not learn from."""

from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor

from etips.data.decisions import Bools
from etips.learn.fitting.prepare import Prepared
from etips.learn.training import memory
from etips.models.answers import answer_decisions, outputs_at
from etips.models.batches import Batch
from etips.models.bundle import Bundle

Readout = Callable[[Tensor, Tensor], Tensor]
"""What to keep of outputs (sets, n, K) at rows (n,)."""


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


def _ask(bundle: Bundle, prepared: Prepared, readout: Readout, asked: Sequence[Bools]) -> Tensor:
    """What sets say of decisions, network k of each of the stays in `asked[k]`; else zeros."""
    n_networks = prepared.folds.n_networks
    n_sets = bundle.n_members // n_networks
    each = [
        bundle.select([k * n_networks + fold for k in range(n_sets)]) for fold in range(n_networks)
    ]

    def ask(batch: Batch, fold: int) -> tuple[Tensor, ...]:
        return (readout(outputs_at(each[fold], batch, prepared.steps), batch.seen),)

    (answers,) = answer_decisions(
        prepared.steps,
        ask,
        groups=[np.flatnonzero(stays) for stays in asked],
        batch_size=memory.stays_at_once(bundle.network, prepared.steps, n_sets),
        axis=1,
    )
    return answers
