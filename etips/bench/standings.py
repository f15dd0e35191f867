"""Entries of a bench put together: who is first in each world, who is level, who is behind."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from etips.bench.bench_worlds import BENCH_WORLDS, Arena
from etips.bench.contest import mean_loss
from etips.data.decisions import Floats
from etips.results.bench_result import BenchEntry, BenchRow, BenchStanding, Group, Place
from etips.runs.tasks import Json
from etips.studies.findings import mean_of

RARELY = 0.05
"""How much more often the first must take rare actions for that to be called a reason."""

Losses = Mapping[tuple[str, int], Floats]
"""Of each (method, seed) with a policy what `stay_losses` gives."""


@dataclass(frozen=True)
class Contestant:
    """A method or a peer that takes part; its cost is its time against others, roughly."""

    name: str
    label: str
    sentence: str
    group: Group
    cost: float = 1.0


def stand(
    arenas: Sequence[Arena],
    grounds: Sequence[Json],
    entries: Sequence[BenchEntry],
    losses: Losses,
    contestants: Sequence[Contestant],
) -> BenchStanding:
    """How the methods stand to each other in a world.

    First is the least mean risk among those that have a policy at every seed; the difference to it
    is paired, stay by stay. Its standard error is that over seeds or that of the stays, whichever
    is larger.
    """
    arena, world = arenas[0], BENCH_WORLDS[arenas[0].world]
    of = {one.name: [e for e in entries if e.method == one.name] for one in contestants}
    done = {name: [e for e in own if e.risk is not None] for name, own in of.items()}
    whole = [
        one.name
        for one in contestants
        if len(done[one.name]) == len(arenas) and one.group != "told"
    ]
    first = min(whole, key=lambda name: mean_of(e.risk for e in done[name]), default=None)
    rows = [_row(one, of[one.name], losses, first, len(arenas)) for one in contestants]
    rows.sort(key=lambda row: (row.risk is None, row.risk))
    ours = next((row for row in rows if row.group == "ours" and row.method in whole), None)
    level = None if ours is None else ours.place in ("first", "level")
    return BenchStanding(
        world=arena.world,
        sentence=world.sentence,
        measure=world.measure,
        n_learn=arena.n_learn,
        n_test=arena.n_test,
        clinicians=_number(ground.get("clinicians") for ground in grounds),
        best=_number(ground.get("best") for ground in grounds),
        clinicians_stay=_number(ground.get("clinicians_stay") for ground in grounds),
        rows=tuple(rows),
        first=first,
        best_of_ours=None if ours is None else ours.method,
        ours_level=level,
        why=tuple(_why(rows, ours)) if level is False else (),
    )


def _row(
    contestant: Contestant,
    own: Sequence[BenchEntry],
    losses: Losses,
    first: str | None,
    n_seeds: int,
) -> BenchRow:
    done = [entry for entry in own if entry.risk is not None]
    failed = next((entry.failed for entry in own if entry.failed is not None), None)
    behind, error = difference(losses, contestant.name, first)
    place: Place = "failed"
    if contestant.group == "told" and done:
        place = "told"
    elif contestant.name == first:
        place = "first"
    elif len(done) == n_seeds and done:
        level = behind is not None and error is not None and behind <= error
        place = "level" if level else "behind"
    return BenchRow(
        method=contestant.name,
        group=contestant.group,
        place=place,
        n_seeds=len(done),
        risk=_number(e.risk for e in done),
        behind=behind,
        behind_error=error,
        estimate=_number(e.estimate for e in done),
        verdicts=dict(Counter(e.verdict for e in done if e.verdict is not None)),
        stay_risk=_number(e.stay_risk for e in done),
        rare=_number(e.rare for e in done),
        seconds=_number(e.seconds for e in done),
        processor=_number(e.processor for e in done),
        memory=max((e.memory for e in done if e.memory is not None), default=None),
        failed=failed,
    )


def difference(losses: Losses, method: str, first: str | None) -> tuple[float | None, float | None]:
    """Risk of a method minus that of another, paired stay by stay, and its standard error."""
    seeds = [seed for name, seed in losses if name == method and (first, seed) in losses]
    if first is None or not seeds:
        return None, None
    pairs = [
        mean_loss(np.stack([own[0] - other[0], own[1]]))
        for own, other in ((losses[method, seed], losses[first, seed]) for seed in seeds)
    ]
    each = np.array([gap for gap, _ in pairs])
    of_stays = math.sqrt(sum((error or 0.0) ** 2 for _, error in pairs)) / len(pairs)
    over_seeds = float(each.std(ddof=1) / math.sqrt(len(each))) if len(each) > 1 else 0.0
    return float(each.mean()), max(of_stays, over_seeds)


def _why(rows: Sequence[BenchRow], ours: BenchRow | None) -> list[str]:
    """What the entries themselves tell of the reason, where another package leads."""
    first = next((row for row in rows if row.place == "first"), None)
    if first is None or ours is None:
        return []
    reasons = []
    if first.rare is not None and ours.rare is not None and first.rare > ours.rare + RARELY:
        reasons.append(
            f"{first.method} takes an action that clinicians take in under 5 % of such patients at "
            f"{first.rare:.0%} of the decisions, {ours.method} at {ours.rare:.0%}: ours keeps to "
            "what the log has support for."
        )
    reliable = first.verdicts.get("reliable", 0)
    if reliable < first.n_seeds:
        reasons.append(
            f"From the log alone nobody could tell: the estimate of {first.method} is reliable at "
            f"{reliable} of {first.n_seeds} seeds."
        )
    return reasons or ["Not known yet."]


def _number(values: object) -> float | None:
    mean = mean_of(values)  # type: ignore[arg-type]
    return mean if math.isfinite(mean) else None
