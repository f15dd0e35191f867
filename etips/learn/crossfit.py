"""Sets of networks, one a fold, and what each says of the stays it did not learn from."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Ints
from etips.learn.objectives import Objective
from etips.learn.prepare import Prepared
from etips.learn.runs import Stage
from etips.learn.training import Report, Settings, run_batch, train
from etips.models.bundle import Bundle
from etips.models.network import Network

Readout = Callable[[Tensor, Tensor], Tensor]
"""What to keep of outputs (sets, n, K) at rows (n,)."""


def fit_sets(
    prepared: Prepared,
    network: Network,
    objective: Objective,
    *,
    stage: str,
    settings: Settings,
    seeds: list[int] | None = None,
    start: Bundle | None = None,
    report: Report | None = None,
) -> Bundle:
    """Train sets of networks: either fresh from `seeds` (one set) or from the `start` given.

    Args:
        prepared: The stays.
        network: Shape of the networks.
        objective: What to minimise; its members come set by set.
        stage: What a run folder calls this training.
        settings: How.
        seeds: One a network of the one set.
        start: Networks to start from, set by set.
        report: Told after every epoch.
    """
    bundle = start if start is not None else Bundle.start(network, seeds or [])
    bundle = bundle.to(prepared.steps.device)
    kept = Stage() if prepared.run is None else prepared.run.stage(stage, bundle, settings)
    if kept.networks is not None:
        return kept.networks
    weight, held_out = prepared.folds.tile(bundle.n_members // prepared.folds.n_networks)
    best, _ = train(
        bundle,
        prepared.steps,
        objective,
        weight=weight,
        held_out=held_out,
        settings=settings,
        report=kept.reporting(report),
        state=kept.state,
        keep=kept.keep,
    )
    return kept.finish(best)


def out_of_fold(bundle: Bundle, prepared: Prepared, readout: Readout) -> Tensor:
    """What each set says of every decision, by the network that did not learn from its stay.

    Args:
        bundle: Networks, set by set.
        prepared: The stays.
        readout: What to keep, so that no more than that is held in memory.
    """
    n_networks = prepared.folds.n_networks
    n_sets = bundle.n_members // n_networks
    place = _places(prepared)
    found: Tensor | None = None
    for fold in range(n_networks):
        members = bundle.select([k * n_networks + fold for k in range(n_sets)])
        stays: Ints = np.flatnonzero(prepared.folds.fold == fold)
        with torch.no_grad():
            for batch in prepared.steps.batches(stays, 1024):
                said = readout(run_batch(members, batch, prepared.steps), batch.seen)
                if found is None:
                    found = said.new_zeros(n_sets, prepared.data.n_decisions, *said.shape[2:])
                found[:, place[batch.seen]] = said
    assert found is not None
    return found


def _places(prepared: Prepared) -> Tensor:
    """Decision that each row answers, shape (n_steps,)."""
    place = torch.zeros(prepared.data.n_steps, dtype=torch.long)
    place[torch.from_numpy(prepared.seen)] = torch.arange(prepared.data.n_decisions)
    return place.to(prepared.steps.device)
