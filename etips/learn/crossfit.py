"""Sets of networks, one a fold, and what each says of the stays it did not learn from."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Ints
from etips.learn import memory
from etips.learn.objectives import Objective, part_of
from etips.learn.passes import run_batch
from etips.learn.prepare import Prepared
from etips.learn.runs import Stage
from etips.learn.settings import Settings
from etips.learn.training import Report, train
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

    All at once if memory allows, else in parts one after another, with the same result.

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
    room = memory.SHARE * memory.free(prepared.steps.device)
    each = memory.estimate(network, prepared.steps, settings)
    parts = memory.parts_of(bundle.n_members, each, room)
    if prepared.run is not None and (size := prepared.run.part_size(stage)):
        parts = memory.cut(bundle.n_members, size)  # as the interrupted run had them
    if len(parts) == 1:
        return _fit_part(prepared, bundle, objective, stage, settings, parts[0], report)
    if prepared.run is not None:
        prepared.run.note(stage, f"{bundle.n_members} networks in {len(parts)} parts, for memory")
    found = [
        _fit_part(
            prepared,
            bundle.select(range(these.start, these.stop)),
            part_of(objective, these),
            f"{stage}-{these.start}-{these.stop}",
            settings,
            these,
            report,
        )
        for these in parts
    ]
    return Bundle.join(found)


def _fit_part(
    prepared: Prepared,
    bundle: Bundle,
    objective: Objective,
    stage: str,
    settings: Settings,
    these: slice,
    report: Report | None,
) -> Bundle:
    """Train some networks of the sets, or take them from where an earlier process left them."""
    bundle = bundle.to(prepared.steps.device)
    kept = Stage(stage) if prepared.run is None else prepared.run.stage(stage, bundle, settings)
    if kept.networks is not None:
        return kept.networks
    n_sets = -(-these.stop // prepared.folds.n_networks)
    weight, held_out = (values[these] for values in prepared.folds.tile(n_sets))
    with memory.refusing_lack():
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
    size = memory.stays_at_once(bundle.network, prepared.steps, n_sets)
    place = _places(prepared)
    found: Tensor | None = None
    for fold in range(n_networks):
        members = bundle.select([k * n_networks + fold for k in range(n_sets)])
        stays: Ints = np.flatnonzero(prepared.folds.fold == fold)
        with torch.no_grad():
            for batch in prepared.steps.batches(stays, size):
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
