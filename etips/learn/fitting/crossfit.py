"""Sets of networks, one a fold, and what each says of the stays it did not learn from."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from etips.learn.fitting.driver import ask, is_together
from etips.learn.fitting.prepare import Prepared
from etips.learn.fitting.requests import Order
from etips.learn.training import memory
from etips.learn.training.epoch_report import Report
from etips.learn.training.loop import train
from etips.learn.training.objectives import Objective, part_of
from etips.learn.training.settings import Settings
from etips.models.answers import answer_decisions, outputs_at
from etips.models.batches import Batch
from etips.models.bundle import Bundle
from etips.models.network import Network
from etips.runs.run import Stage

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
    order = Order(prepared, bundle, objective, stage, settings, report)
    return _fit_beside_others(order) if is_together() else _fit(order)


def _fit(order: Order) -> Bundle:
    """Do an order, in parts if memory asks for it."""
    n_networks, run = order.bundle.n_members, order.prepared.run
    parts = _parts(order)
    if run is not None and (size := run.part_size(order.stage)):
        parts = memory.cut(n_networks, size)  # as the interrupted run had them
    if len(parts) == 1:
        return _fit_part(order, parts[0])
    if run is not None:
        run.note(order.stage, f"{n_networks} networks in {len(parts)} parts, for memory")
    return Bundle.join([_fit_part(_part(order, these), these) for these in parts])


def _parts(order: Order) -> list[slice]:
    """Networks that train at once."""
    steps = order.prepared.steps
    each = memory.estimate(order.bundle.network, steps, order.settings)
    return memory.parts_of(order.bundle.n_members, each, memory.room(steps.device))


def _part(order: Order, these: slice) -> Order:
    """The order of some of its networks."""
    return replace(
        order,
        bundle=order.bundle.select(range(these.start, these.stop)),
        objective=part_of(order.objective, these),
        stage=f"{order.stage}-{these.start}-{these.stop}",
    )


def _fit_part(order: Order, these: slice) -> Bundle:
    """Train some networks of the sets, or take them from where an earlier process left them."""
    kept = _stage(order)
    if kept.networks is not None:
        return kept.networks
    report = kept.reporting(order.report)
    return kept.finish(
        _train(replace(order, report=report), these, state=kept.state, keep=kept.keep)
    )


def _stage(order: Order) -> Stage:
    run, start = order.prepared.run, order.bundle.to(order.prepared.steps.device)
    return Stage(order.stage) if run is None else run.stage(order.stage, start, order.settings)


def _fit_beside_others(order: Order) -> Bundle:
    """Have networks trained together with those of other learners.

    A stage that was finished before is taken from the run; one that was not begins anew.
    """
    kept = _stage(order)
    if kept.networks is not None:
        return kept.networks
    return kept.finish(ask(replace(order, report=kept.reporting(order.report)), _fit_joined))


def _fit_joined(order: Order, rates: Tensor, decays: Tensor) -> Bundle:
    """Train the networks of several learners as one bundle, in parts if memory asks for it."""
    return Bundle.join(
        [
            _train(
                _part(order, these),
                these,
                learning_rates=rates[these],
                weight_decays=decays[these],
            )
            for these in _parts(order)
        ]
    )


def _train(order: Order, these: slice, **more: Any) -> Bundle:  # noqa: ANN401
    """Train some networks of the sets; `more` is for `train`."""
    prepared = order.prepared
    n_sets = -(-these.stop // prepared.folds.n_networks)
    weight, held_out = (values[these] for values in prepared.folds.tile(n_sets))
    with memory.refusing_lack():
        best, _ = train(
            order.bundle.to(prepared.steps.device),
            prepared.steps,
            order.objective,
            weight=weight,
            held_out=held_out,
            settings=order.settings,
            report=order.report,
            **more,
        )
    return best


def out_of_fold(bundle: Bundle, prepared: Prepared, readout: Readout) -> Tensor:
    """What each set says of every decision, by the network that did not learn from its stay.

    Args:
        bundle: Networks, set by set.
        prepared: The stays.
        readout: What to keep, so that no more than that is held in memory.
    """
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
        groups=[np.flatnonzero(prepared.folds.fold == fold) for fold in range(n_networks)],
        batch_size=memory.stays_at_once(bundle.network, prepared.steps, n_sets),
        axis=1,
    )
    return answers
