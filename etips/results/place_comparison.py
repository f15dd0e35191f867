"""Policies place by place: does one carry over, and is a difference more than another case mix?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Literal

import numpy as np

from etips.data.decisions import Floats
from etips.data.history_rows import visible_rows
from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.evaluation.assessment import Assessment, assess_part
from etips.evaluation.comparing.pairwise import hold_alike, subtract
from etips.evaluation.comparing.transport import (
    CaseMix,
    chance_of_second,
    match_case_mix,
    transported,
)
from etips.evaluation.inference.checks import Bools, Rows
from etips.evaluation.inference.estimate import Contrast, Estimate, holm
from etips.evaluation.inference.intervals import Interval
from etips.evaluation.log import Log, View
from etips.evaluation.prognosis import cross_fit
from etips.evaluation.risk import logged_risk
from etips.results.comparison_result import (
    CLINICIANS,
    AlikeResult,
    CarriedResult,
    Figure,
    OverlapResult,
    PlaceFigure,
    PlaceResult,
    PlacesResult,
)
from etips.results.groupings import (
    MISSING,
    WITHHELD,
    Grouping,
    hide_levels,
    pool_few,
    source_features,
)
from etips.results.records import Label

MOST_PAIRED = 4
"""Up to so many places each is held against each; beyond, all against the largest."""

OVERLAPS = {
    "good": "Patients like those of {target} are common enough in {source}.",
    "fair": "Some patients of {target} are rare in {source}: what is carried over is doubtful.",
    "poor": "Too many patients of {target} have no like in {source}: nothing is carried over.",
}


@dataclass(frozen=True, eq=False)
class Place:
    """One place that may be shown."""

    label: str
    inside: Bools
    log: Log
    judged: Mapping[str, Assessment]
    clinicians: Estimate

    def risk(self, policy: str) -> Estimate:
        """Of a policy, or of what was done."""
        return self.clinicians if policy == CLINICIANS else self.judged[policy].estimates[0]

    def verdict(self, policy: str) -> Label:
        """On that; what was done was seen."""
        return "reliable" if policy == CLINICIANS else self.judged[policy].verdict.label


def compare_places(
    data: Trajectories,
    log: Log,
    judged: Mapping[str, Assessment],
    grouping: Grouping,
    *,
    estimator: str,
    interval: Interval,
    target: str | None = None,
) -> PlacesResult:
    """Each policy and the clinicians in each place, whether places differ, and why.

    Args:
        judged: The policies as the whole log sees them.
        target: Carry figures over to this place alone.
    """
    grouping, views = pool_few(grouping, log), {name: own.policy for name, own in judged.items()}
    people, hidden = hide_levels(grouping, log, nested=False)
    places = {
        level: _place(label, grouping.place == level, log, views, estimator, interval)
        for level, label in enumerate(grouping.labels)
        if people[level] and not hidden[level]
    }
    rows = tuple(
        _shown(places[level], people[level])
        if level in places
        else PlaceResult(WITHHELD if grouping.telling else label)
        for level, label in enumerate(grouping.labels)
        if people[level]
    )
    if not places:
        rows = (PlaceResult(WITHHELD),)
    named = [place for place in places.values() if place.label != MISSING]
    overlaps, carried = _carry(data, log, views, named, grouping.name, estimator, interval, target)
    return PlacesResult(
        column=grouping.name,
        places=rows,
        alike=_alike(list(places.values()), (CLINICIANS, *views), interval),
        overlaps=overlaps,
        carried=carried,
    )


def _place(
    label: str,
    inside: Bools,
    log: Log,
    views: Mapping[str, View],
    estimator: str,
    interval: Interval,
) -> Place:
    part = log.take(inside)
    judged = {
        name: assess_part(part, own, inside, estimator=estimator, interval=interval)
        for name, own in views.items()
    }
    clinicians = logged_risk(part.loss, part.clusters, interval=interval)
    return Place(label, inside, part, judged, clinicians)


def _shown(place: Place, n_people: int) -> PlaceResult:
    figures = [PlaceFigure(CLINICIANS, as_figure(place.clinicians))]
    for name, own in place.judged.items():
        apart, verdict = difference_figure(own.gain), own.verdict
        risk = as_figure(own.estimates[0])
        figures.append(PlaceFigure(name, risk, apart, verdict.label, verdict.reasons))
    return PlaceResult(place.label, n_people, place.log.n_decisions, tuple(figures))


def as_figure(risk: Estimate) -> Figure:
    """A risk with its interval."""
    return Figure(risk.risk, risk.low, risk.high, risk.std_error)


def difference_figure(own: Contrast) -> Figure:
    """A difference with its interval."""
    return Figure(own.difference, own.low, own.high, own.std_error)


def _alike(
    places: Sequence[Place], names: Sequence[str], interval: Interval
) -> tuple[AlikeResult, ...]:
    """Whether places differ in what was done, and in what each policy would change."""
    asked = []
    for name in names:
        usable = [place for place in places if place.verdict(name) != "unusable"]
        if name == CLINICIANS:
            parts = [place.clinicians.evidence for place in usable]
        else:
            parts = [place.judged[name].gain.evidence for place in usable]
        found = hold_alike(parts, interval=interval)
        if found is not None:
            sure = all(place.verdict(name) == "reliable" for place in usable)
            asked.append((name, found, sure))
    if not asked:
        return ()
    adjusted = holm([found.p_value for _, found, _ in asked])
    rows = []
    for (name, found, sure), p in zip(asked, adjusted.tolist(), strict=True):
        words = "places differ" if p <= 0.05 else "no difference between places shown"
        quantity: Literal["risk", "difference"] = "risk" if name == CLINICIANS else "difference"
        figures = found.q, found.freedom, found.p_value, p, found.i_squared
        rows.append(AlikeResult(name, quantity, *figures, words if sure else f"{words}, doubtful"))
    return tuple(rows)


def _carry(
    data: Trajectories,
    log: Log,
    views: Mapping[str, View],
    places: Sequence[Place],
    column: str,
    estimator: str,
    interval: Interval,
    target: str | None,
) -> tuple[tuple[OverlapResult, ...], tuple[CarriedResult, ...]]:
    """Figures of each place with the case mix of another."""
    directions = _directions(places, target)
    if not directions:
        return (), ()
    features = case_mix_rows(data, column)
    if features.shape[1] == 0:
        return (), ()
    prognosis = _prognosis(features, log, views)
    overlaps: list[OverlapResult] = []
    carried: list[CarriedResult] = []
    chances: dict[tuple[str, str], Floats] = {}
    for source, goal in directions:
        turned = chances.get((goal.label, source.label))
        ends = source.inside, goal.inside
        chance = chance_of_second(features, *ends, log) if turned is None else 1 - turned
        chances[source.label, goal.label] = chance
        mix = match_case_mix(features, prognosis, *ends, log, chance=chance)
        overlaps.append(_overlap(source, goal, mix))
        carried += [
            _carried(name, source, goal, mix, estimator, interval) for name in (CLINICIANS, *views)
        ]
    return tuple(overlaps), tuple(carried)


def _directions(places: Sequence[Place], target: str | None) -> list[tuple[Place, Place]]:
    labels = [place.label for place in places]
    if target is not None and target not in labels:
        raise SettingError("target", f"must be one of {', '.join(labels)}")
    if target is None and len(places) <= MOST_PAIRED:
        return list(permutations(places, 2))
    largest = max(places, key=lambda place: place.log.n_decisions, default=None)
    goal = next((place for place in places if place.label == target), largest)
    return [(place, goal) for place in places if goal is not None and place is not goal]


def case_mix_rows(data: Trajectories, column: str) -> Rows:
    """What was visible at each decision, less what tells the place itself, shape (n, d)."""
    sequence, static = source_features(data, column)
    schema = data.schema
    if len(sequence) + len(static) == len(schema.sequence) + len(schema.static):
        return visible_rows(data)
    reduced = replace(
        schema,
        sequence=tuple(schema.sequence[number] for number in sequence),
        static=tuple(schema.static[number] for number in static),
        categories={k: own for k, own in schema.categories.items() if k != column},
        indicators=tuple(name for name in schema.indicators if name != column),
        recipe=None,
    )
    narrow = replace(
        data,
        sequence=data.sequence[:][:, sequence],
        static=data.static[:, static],
        schema=reduced,
    )
    return visible_rows(narrow)


def _prognosis(features: Rows, log: Log, views: Mapping[str, View]) -> Floats:
    """Expected loss of each patient: as treated, and as each policy would treat, shape (n, q)."""
    expected = cross_fit(features, log.loss, log.clusters, log.action, log.n_actions)
    own = expected.by_action[log.rows, log.action].astype(np.float64)
    columns = [expected.plain]
    for policy in views.values():
        mean = np.einsum("na,na->n", policy.probabilities, expected.by_action)
        columns.append(mean if policy.abstains is None else np.where(policy.abstains, own, mean))
    return np.stack(columns, axis=1)


def _overlap(source: Place, goal: Place, mix: CaseMix) -> OverlapResult:
    return OverlapResult(
        *(source.label, goal.label, mix.overlap),
        *(mix.effective_share, mix.discrimination, mix.prognosis_before, mix.prognosis_after),
        words=OVERLAPS[mix.overlap].format(source=source.label, target=goal.label),
    )


def _carried(
    name: str, source: Place, goal: Place, mix: CaseMix, estimator: str, interval: Interval
) -> CarriedResult:
    names, there = (name, source.label, goal.label), goal.risk(name)
    here, beyond = as_figure(source.risk(name)), as_figure(there)
    if mix.overlap == "poor":
        return CarriedResult(*names, here, Figure(), beyond, Figure(), "unusable")
    verdict = source.verdict(name)
    if mix.overlap == "fair" and verdict == "reliable":
        verdict = "doubtful"
    policy = None if name == CLINICIANS else source.judged[name].policy
    moved = transported(estimator, source.log, policy, mix, interval=interval)
    left = subtract(moved.evidence, there.evidence)
    remaining = Figure(left.value, *interval(left), left.std_error)
    return CarriedResult(*names, here, as_figure(moved), beyond, remaining, verdict)
