"""Like requests of several learners as one: their networks train side by side in one bundle.

A search tries learners that differ in rates and decays, and networks of one bundle may differ in
those.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import torch
from torch import Tensor
from torch.nn import functional

from etips.learn.fitting.requests import TrainingRequest
from etips.learn.training.epoch_report import EpochReport, Report
from etips.learn.training.objectives import (
    Objective,
    Pool,
    Sliced,
    Weighted,
    combine,
    part_of,
    pool_of,
)
from etips.models.bundle import Bundle


@dataclass(frozen=True, eq=False)
class Group:
    """Requests that train as one bundle.

    Args:
        request: All of them as one.
        learning_rates: One a network, shape (J,).
        weight_decays: The same.
        edges: Where the networks of each request begin, and where the last ones end.
    """

    request: TrainingRequest
    learning_rates: Tensor
    weight_decays: Tensor
    edges: Sequence[int]

    def deal(self, bundle: Bundle) -> list[Bundle]:
        """To each request its own networks."""
        return [bundle.select(range(start, stop)) for start, stop in pairwise(self.edges)]


def join_requests(requests: Sequence[TrainingRequest]) -> Group:
    """Like requests as one."""
    edges = [0, *accumulate(request.bundle.n_members for request in requests)]
    joined = replace(
        requests[0],
        bundle=Bundle.join([request.bundle for request in requests]),
        objective=join_objectives([request.objective for request in requests], edges),
    )
    device = joined.prepared.steps.device
    rates = [torch.full((r.bundle.n_members,), r.settings.learning_rate) for r in requests]
    decays = [torch.full((r.bundle.n_members,), r.settings.weight_decay) for r in requests]
    return Group(joined, torch.cat(rates).to(device), torch.cat(decays).to(device), edges)


def group_alike(requests: Mapping[int, TrainingRequest]) -> list[list[int]]:
    """Numbers of the requests that train as one; the groups are in the order of their first."""
    waiting, groups = sorted(requests), []
    while waiting:
        first = requests[waiting[0]]
        group = [number for number in waiting if first.is_like(requests[number])]
        waiting = [number for number in waiting if number not in group]
        groups.append(group)
    return groups


def join_objectives(objectives: Sequence[Objective], edges: Sequence[int]) -> Objective:
    """The objective of a bundle whose networks come from several.

    Args:
        objectives: One a request.
        edges: Where the networks of each begin, and where the last ones end.
    """

    def shares(these: slice) -> Iterator[tuple[Objective, slice]]:
        """Of some networks: whose objective is for which of the outputs."""
        chosen = range(edges[-1])[these]
        for objective, (start, stop) in zip(objectives, pairwise(edges), strict=True):
            own = [place for place, member in enumerate(chosen) if start <= member < stop]
            if own:
                first = chosen[own[0]] - start
                part = slice(first, chosen[own[-1]] - start + 1, chosen.step)
                yield part_of(objective, part), slice(own[0], own[-1] + 1)

    pools = [pool for objective in objectives if (pool := pool_of(objective))]
    most = max((pool.n_terms for pool in pools), default=1)

    def value(outputs: Tensor, seen: Tensor, these: slice) -> Tensor:
        each = [own(outputs[rows], seen) for own, rows in shares(these)]
        return torch.cat([_filled(own, most) for own in each] if pools else each, dim=-2)

    def pooled(means: Tensor, these: slice) -> Tensor:
        risks = []
        for own, rows in shares(these):
            pool = pool_of(own)
            risks.append(
                combine(own, means[0, rows] if pool is None else means[: pool.n_terms, rows])
            )
        return torch.cat(risks)

    def weight(outputs: Tensor, seen: Tensor, these: slice) -> Tensor:
        return torch.cat(
            [
                own.weigh(outputs[rows], seen)
                for own, rows in shares(these)
                if isinstance(own, Weighted)
            ]
        )

    weighted = all(isinstance(objective, Weighted) for objective in objectives)
    pool = Pool(most, pooled) if pools else None
    return Weighted(value, weight, pool=pool) if weighted else Sliced(value)


def _filled(values: Tensor, n_terms: int) -> Tensor:
    """Values of decisions, shape (J, n) or fewer terms of them, as (n_terms, J, n)."""
    terms = values if values.dim() == 3 else values[None]
    return functional.pad(terms, (0, 0, 0, 0, 0, n_terms - len(terms)))


def join_reports(reports: Sequence[Report | None]) -> Report | None:
    """One that tells all; None if there is nobody to tell."""
    told = [report for report in reports if report is not None]
    if not told:
        return None

    def report(standing: EpochReport) -> None:
        for each in told:
            each(standing)

    return report
