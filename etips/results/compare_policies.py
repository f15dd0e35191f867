"""Compare policies with each other and with the clinicians, overall and place by place."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import Floats
from etips.data.history_rows import visible_rows
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.evaluation.assessment import Assessment, assess, assess_part
from etips.evaluation.censoring import complete_losses
from etips.evaluation.comparing.pairwise import (
    Pair,
    compare_pairs,
    hold_alike,
    subtract,
)
from etips.evaluation.comparing.transport import (
    CaseMix,
    chance_of_second,
    match_case_mix,
    transported,
)
from etips.evaluation.estimators import find_estimators
from etips.evaluation.inference.checks import Bools, Rows
from etips.evaluation.inference.estimate import Contrast, Estimate, holm
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log, View
from etips.evaluation.prognosis import cross_fit
from etips.evaluation.risk import logged_risk
from etips.evaluation.verdict import Verdict, join_verdicts, judge_difference
from etips.files.json_documents import plain
from etips.machine import still_products
from etips.results.comparison_result import (
    CLINICIANS,
    AlikeResult,
    CarriedResult,
    ComparedPolicy,
    Comparison,
    Figure,
    OverlapResult,
    PairResult,
    PlaceResult,
    PlacesResult,
)
from etips.results.conclusions import Conclusion
from etips.results.data_summary import summarize_data
from etips.results.evaluation_log import EvaluationLog, Models, make_log
from etips.results.followed_policies import (
    RULE,
    Followed,
    GivenPolicies,
    Policy,
    follow_unseen,
    name_policies,
    require_unseen_stays,
    true_risk,
)
from etips.results.groupings import (
    MISSING,
    WITHHELD,
    By,
    Grouping,
    group_decisions,
    hide_levels,
    pool_few,
    source_features,
)
from etips.results.records import DataSummary, Label, existing

MOST_PAIRED = 4
"""Up to so many places each is held against each; beyond, all against the largest."""

OVERLAPS = {
    "good": "Patients like those of {target} are common enough in {source}.",
    "fair": "Some patients of {target} are rare in {source}: what is carried over is doubtful.",
    "poor": "Too many patients of {target} have no like in {source}: nothing is carried over.",
}


@still_products()
def compare(
    policies: GivenPolicies | None,
    data: Trajectories,
    *,
    by: By | None = None,
    reference: str | None = None,
    target: str | None = None,
    estimator: str | None = None,
    interval: Interval = DEFAULT,
    models: Models | None = None,
    propensities: Floats | None = None,
    allow_seen: bool = False,
    settings: Mapping[str, object] = {},
    sources: NDArray[np.str_] | None = None,
) -> Comparison:
    """Differences between policies, and between each of them and what was done, paired by stay.

    Args:
        policies: One policy, a list of them, or several by name; None compares places alone.
        by: Column of the data, or values by decision or stay: compare place by place too.
        reference: Compare every other policy with this one only; "clinicians" is one of them.
        target: Carry figures over to the case mix of this place alone.
        estimator: Of all risks; the evaluation's headline if left out.
        models: How to cross-fit, on `data`, propensities that are not known and predicted losses.
        propensities: Known probability of every action, shape (n_decisions, n_actions).
        allow_seen: Take stays that a policy learned from; the results say so.
        sources: Of each stay, where `data` were joined: each is then fitted by itself.
    """
    started, named = time.perf_counter(), _named(policies, by, reference, target)
    seen = require_unseen_stays(named, data, allow_seen=allow_seen)
    data = complete_losses(data)
    grouping = None if by is None else group_decisions(data, by)
    followed = follow_unseen(named, data, seen)
    made = join_logs(data, sources, partial(_log, named, models=models, known=propensities))
    log, about = made.log, summarize_data(data)
    (entry, *_) = find_estimators(() if estimator is None else (estimator,), log)
    judged = {
        name: assess(log, *policy.deployed.judged, estimators=(entry.name,), interval=interval)
        for name, policy in followed.items()
    }
    clinicians = logged_risk(log.loss, log.clusters, interval=interval)
    pairs: tuple[PairResult, ...] = ()
    if judged:
        estimates = {name: assessment.estimates[0] for name, assessment in judged.items()}
        estimates[CLINICIANS] = clinicians
        pairs = tuple(
            _pair(pair, judged, followed, log, about, entry.name)
            for pair in compare_pairs(estimates, reference=reference, interval=interval)
        )
    places = None
    if grouping is not None:
        places = compare_places(data, log, judged, grouping, entry.name, interval, target)
    comparison = Comparison(
        data=about,
        policies=_policies(judged, followed, clinicians, data, about),
        pairs=pairs,
        estimator=entry.name,
        reference=reference,
        places=places,
        notes=made.notes,
        settings={name: plain(value) for name, value in settings.items()},
        seconds=time.perf_counter() - started,
    )
    return existing(comparison)


def _named(
    policies: GivenPolicies | None, by: By | None, reference: str | None, target: str | None
) -> dict[str, Policy]:
    """Policies by name; a question without an answer is refused before anything is fitted."""
    named = {} if policies is None else name_policies(policies)
    if CLINICIANS in named:
        rule = f"must not be called {CLINICIANS}: what was done is compared under that name"
        raise SettingError("policies", rule)
    if not named and by is None:
        raise SettingError(
            "policies", "must hold one policy, unless places are compared by a column"
        )
    if reference is not None and reference not in (*named, CLINICIANS):
        rule = f"must be one of {', '.join((*named, CLINICIANS))}"
        raise SettingError("reference", rule)
    if target is not None and by is None:
        raise SettingError("target", "is a place: say by which column they are told apart")
    return named


def _log(
    named: Mapping[str, Policy], data: Trajectories, models: Models | None, known: Floats | None
) -> EvaluationLog:
    """The decisions; where places alone are compared, nothing has to be fitted."""
    if named:
        return make_log(named, data, models or Models(), known=known)
    log = Log(
        loss=data.logged_loss,
        action=data.logged_action,
        propensity=np.ones(data.n_decisions),
        cluster=data.cluster,
        n_actions=max(data.n_actions, 2),
        features=visible_rows(data),
        lag=data.lag,
    )
    return EvaluationLog(log, {}, None)


def join_logs(
    data: Trajectories,
    sources: NDArray[np.str_] | None,
    fit: Callable[[Trajectories], EvaluationLog],
) -> EvaluationLog:
    """The log of stays of several sources, or of one: what weighs is fitted in its own source.

    Two hospitals treat the same patient differently, and no feature says which of them it was. What
    is fitted on both together would be wrong in each.

    Args:
        sources: Of each stay, shape (n_stays,); None where there is but one.
    """
    if sources is None:
        return fit(data)
    runs = [label for label, _ in groupby(sources.tolist())]
    if sources.shape != (data.n_stays,) or len(set(runs)) != len(runs):
        raise DataError("sources", "must name the source of each stay, one source after the other")
    made = {label: fit(data.subset(sources == label)) for label in runs}
    logs = [source.log for source in made.values()]

    def stacked(name: str, instead: str | None = None) -> NDArray[Any] | None:
        """An array of all; None where one has none, or, with `instead`, where none has any."""
        arrays = [getattr(log, name) for log in logs]
        if all(array is None for array in arrays):
            return None
        if instead is not None:
            pairs = zip(arrays, logs, strict=True)
            arrays = [getattr(log, instead) if array is None else array for array, log in pairs]
        return None if any(array is None for array in arrays) else np.concatenate(arrays)

    joined = Log(
        loss=np.concatenate([log.loss for log in logs]),
        action=np.concatenate([log.action for log in logs]),
        propensity=np.concatenate([log.propensity for log in logs]),
        cluster=data.cluster,
        n_actions=logs[0].n_actions,
        propensities=stacked("propensities"),
        predicted=stacked("predicted"),
        propensity_floor=max(log.propensity_floor for log in logs),
        features=stacked("features"),
        known=all(log.known for log in logs),
        lag=logs[0].lag,
        plain_propensity=stacked("plain_propensity", instead="propensity"),
        plain_predicted=stacked("plain_predicted", instead="predicted"),
    )
    notes = {
        f"{label}: {name}": text
        for label, source in made.items()
        for name, text in source.notes.items()
    }
    return EvaluationLog(joined, notes, None)


def _policies(
    judged: Mapping[str, Assessment],
    followed: Mapping[str, Followed],
    clinicians: Estimate,
    data: Trajectories,
    about: DataSummary,
) -> tuple[ComparedPolicy, ...]:
    """Each with its verdict, the clinicians last; their risk may be a count of a few events."""
    done = Figure() if about.mean_loss is None else as_figure(clinicians)
    policies = [
        ComparedPolicy(
            name=name,
            risk=as_figure(assessment.estimates[0]),
            verdict=assessment.verdict.label,
            reasons=assessment.verdict.reasons,
            in_sample=followed[name].in_sample,
            sentence=followed[name].notes.get(RULE),
            truth=true_risk(followed[name].deployed, data),
        )
        for name, assessment in judged.items()
    ]
    return (*policies, ComparedPolicy(CLINICIANS, done, None))


def _pair(
    pair: Pair,
    judged: Mapping[str, Assessment],
    followed: Mapping[str, Followed],
    log: Log,
    about: DataSummary,
    estimator: str,
) -> PairResult:
    names = (pair.first, pair.second)
    parts = {name: judged[name] for name in names if name != CLINICIANS}
    verdicts, contrast = {name: part.verdict for name, part in parts.items()}, pair.contrast
    verdict, same = join_verdicts(verdicts), False
    if len(parts) == 2:
        first, second = (part.policy for part in parts.values())
        between = judge_difference(log, first, second, contrast, estimator)
        verdict = join_verdicts(verdicts, between)
        same = np.array_equal(first.probabilities, second.probabilities)
        same = same and np.array_equal(first.weight, second.weight)
    elif about.mean_loss is None:
        words = "hidden: it would give a few people away"
        return PairResult(*names, Figure(), None, None, None, verdict.label, (), "unknown", words)
    seen = any(followed[name].in_sample for name in parts)
    conclusion = conclude_pair(pair, verdict, about, in_sample=seen)
    return PairResult(
        *names,
        difference=as_figure(contrast),
        p_value=pair.p_value,
        adjusted_p=pair.adjusted_p,
        differs=pair.differs,
        verdict=verdict.label,
        reasons=verdict.reasons,
        finding=conclusion.kind,
        words="they do the same" if same else conclusion.words,
    )


def conclude_pair(
    pair: Pair, verdict: Verdict, about: DataSummary, *, in_sample: bool = False
) -> Conclusion:
    """What may be said of a pair; the verdict has a say, and so has what one decision is.

    Args:
        in_sample: Whether one of the two learned from these stays.
    """
    if verdict.label == "unusable":
        return Conclusion("unusable", "unusable")
    words = "no difference shown"
    if pair.differs:
        side = "lower" if pair.contrast.difference < 0 else "higher"
        words = f"{side} risk" if about.one_decision else f"{side} at one decision"
    if in_sample:
        return Conclusion("doubtful", f"{words}, in sample")
    if verdict.label == "doubtful":
        return Conclusion("doubtful", f"{words}, doubtful")
    if not pair.differs:
        return Conclusion("none", words)
    if pair.contrast.difference > 0:
        return Conclusion("worse", words)
    return Conclusion("better" if about.one_decision else "partly", words)


def as_figure(estimate: Estimate | Contrast) -> Figure:
    """A risk, or a difference, with its interval."""
    value = estimate.risk if isinstance(estimate, Estimate) else estimate.difference
    return Figure(value, estimate.low, estimate.high, estimate.std_error)


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
    estimator: str,
    interval: Interval,
    target: str | None = None,
) -> PlacesResult:
    """Each policy and the clinicians in each place, whether places differ, and why.

    Args:
        judged: The policies as the whole log sees them.
        target: Carry figures over to this place alone.
    """
    grouping, views = (
        pool_few(grouping, log),
        {name: assessment.policy for name, assessment in judged.items()},
    )
    people, hidden = hide_levels(grouping, log, nested=False)
    places, rows = [], []
    for level, label in enumerate(grouping.labels):
        if not people[level]:
            continue
        if hidden[level]:
            rows.append(PlaceResult(WITHHELD if grouping.telling else label))
            continue
        inside = grouping.place == level
        part = log.take(inside)
        assessments = {
            name: assess_part(part, policy, inside, estimator=estimator, interval=interval)
            for name, policy in views.items()
        }
        done = logged_risk(part.loss, part.clusters, interval=interval)
        places.append(Place(label, inside, part, assessments, done))
        figures = (
            ComparedPolicy(CLINICIANS, as_figure(done), None),
            *(
                ComparedPolicy(
                    name,
                    as_figure(each.estimates[0]),
                    each.verdict.label,
                    each.verdict.reasons,
                    as_figure(each.gain),
                )
                for name, each in assessments.items()
            ),
        )
        rows.append(PlaceResult(label, people[level], part.n_decisions, figures))
    overlaps, carried = _carry(
        log,
        views,
        _directions([place for place in places if place.label != MISSING], target),
        case_mix_rows(data, grouping.name),
        estimator,
        interval,
    )
    return PlacesResult(
        column=grouping.name,
        places=tuple(rows) if places else (PlaceResult(WITHHELD),),
        alike=_alike(places, (CLINICIANS, *views), interval),
        overlaps=overlaps,
        carried=carried,
    )


def _alike(
    places: Sequence[Place], names: Sequence[str], interval: Interval
) -> tuple[AlikeResult, ...]:
    """Whether places differ in what was done, and in what each policy would change."""
    asked = []
    for name in names:
        usable = [place for place in places if place.verdict(name) != "unusable"]
        found = hold_alike(
            [
                place.clinicians.evidence
                if name == CLINICIANS
                else place.judged[name].gain.evidence
                for place in usable
            ],
            interval=interval,
        )
        if found is not None:
            asked.append((name, found, all(p.verdict(name) == "reliable" for p in usable)))
    if not asked:
        return ()
    adjusted = holm([found.p_value for _, found, _ in asked])
    rows = []
    for (name, found, sure), p in zip(asked, adjusted.tolist(), strict=True):
        words = "places differ" if p <= 0.05 else "no difference between places shown"
        figures = found.q, found.freedom, found.p_value, p, found.i_squared
        rows.append(
            AlikeResult(
                name,
                "risk" if name == CLINICIANS else "difference",
                *figures,
                words if sure else f"{words}, doubtful",
            )
        )
    return tuple(rows)


def _directions(places: Sequence[Place], target: str | None) -> list[tuple[Place, Place]]:
    """From which place to which figures are carried over."""
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
        categories={k: levels for k, levels in schema.categories.items() if k != column},
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


def _carry(
    log: Log,
    views: Mapping[str, View],
    directions: Sequence[tuple[Place, Place]],
    features: Rows,
    estimator: str,
    interval: Interval,
) -> tuple[tuple[OverlapResult, ...], tuple[CarriedResult, ...]]:
    """Figures of each place with the case mix of another."""
    if not directions or features.shape[1] == 0:
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
        overlaps.append(
            OverlapResult(
                *(source.label, goal.label, mix.overlap),
                *(mix.effective_share, mix.discrimination),
                *(mix.prognosis_before, mix.prognosis_after),
                words=OVERLAPS[mix.overlap].format(source=source.label, target=goal.label),
            )
        )
        carried += [
            _carried(name, source, goal, mix, estimator, interval) for name in (CLINICIANS, *views)
        ]
    return tuple(overlaps), tuple(carried)


def _prognosis(features: Rows, log: Log, views: Mapping[str, View]) -> Floats:
    """Expected loss of each patient: as treated, and as each policy would treat, shape (n, q)."""
    expected = cross_fit(features, log.loss, log.clusters, log.action, log.n_actions)
    taken = expected.by_action[log.rows, log.action].astype(np.float64)
    columns = [expected.plain]
    for policy in views.values():
        mean = np.einsum("na,na->n", policy.probabilities, expected.by_action)
        columns.append(mean if policy.abstains is None else np.where(policy.abstains, taken, mean))
    return np.stack(columns, axis=1)


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
