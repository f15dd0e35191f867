"""Compare policies with each other and with the clinicians, overall and place by place."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import Floats
from etips.data.history_rows import visible_rows
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.evaluation.assessment import Assessment, assess
from etips.evaluation.comparing.pairwise import (
    Pair,
    compare_pairs,
    join_verdicts,
    judge_difference,
)
from etips.evaluation.estimators import find_estimators
from etips.evaluation.inference.estimate import Estimate
from etips.evaluation.inference.intervals import DEFAULT, Interval
from etips.evaluation.log import Log
from etips.evaluation.risk import logged_risk
from etips.evaluation.verdict import Verdict
from etips.files.json_documents import plain
from etips.machine import still_products
from etips.results.comparison_result import (
    CLINICIANS,
    ComparedPolicy,
    Comparison,
    Figure,
    PairResult,
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
from etips.results.further_checks import FurtherChecks
from etips.results.groupings import By, group_decisions
from etips.results.place_comparison import as_figure, compare_places, difference_figure
from etips.results.records import DataSummary, existing


@dataclass(frozen=True, eq=False)
class _Judged:
    """Policies as a log sees them, by name."""

    followed: Mapping[str, Followed]
    assessments: Mapping[str, Assessment]
    clinicians: Estimate
    estimator: str


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
    data = FurtherChecks.of(data, None).data
    grouping = None if by is None else group_decisions(data, by)
    followed = follow_unseen(named, data, seen)
    made = join_logs(data, sources, partial(_log, named, models=models, known=propensities))
    judged, about = _judge(followed, made.log, estimator, interval), summarize_data(data)
    own = data, made.log, judged.assessments
    asked = partial(compare_places, *own, target=target, interval=interval)
    comparison = Comparison(
        data=about,
        policies=_policies(judged, data, about),
        pairs=_pairs(judged, made.log, about, reference, interval),
        estimator=judged.estimator,
        reference=reference,
        places=None if grouping is None else asked(grouping, estimator=judged.estimator),
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


def _judge(
    followed: Mapping[str, Followed], log: Log, estimator: str | None, interval: Interval
) -> _Judged:
    (entry, *_) = find_estimators(() if estimator is None else (estimator,), log)
    assessments = {
        name: assess(log, *own.deployed.judged, estimators=(entry.name,), interval=interval)
        for name, own in followed.items()
    }
    clinicians = logged_risk(log.loss, log.clusters, interval=interval)
    return _Judged(followed, assessments, clinicians, entry.name)


def _policies(
    judged: _Judged, data: Trajectories, about: DataSummary
) -> tuple[ComparedPolicy, ...]:
    """Each with its verdict, the clinicians last; their risk may be a count of a few events."""
    policies = [
        ComparedPolicy(
            name=name,
            risk=as_figure(own.estimates[0]),
            verdict=own.verdict.label,
            reasons=own.verdict.reasons,
            in_sample=judged.followed[name].in_sample,
            sentence=judged.followed[name].notes.get(RULE),
            truth=true_risk(judged.followed[name].deployed, data),
        )
        for name, own in judged.assessments.items()
    ]
    done = Figure() if about.mean_loss is None else as_figure(judged.clinicians)
    return (*policies, ComparedPolicy(CLINICIANS, done, None))


def _pairs(
    judged: _Judged, log: Log, about: DataSummary, reference: str | None, interval: Interval
) -> tuple[PairResult, ...]:
    if not judged.assessments:
        return ()
    estimates = {name: own.estimates[0] for name, own in judged.assessments.items()}
    estimates[CLINICIANS] = judged.clinicians
    pairs = compare_pairs(estimates, reference=reference, interval=interval)
    return tuple(_pair(pair, judged, log, about) for pair in pairs)


def _pair(pair: Pair, judged: _Judged, log: Log, about: DataSummary) -> PairResult:
    names = (pair.first, pair.second)
    parts = {name: judged.assessments[name] for name in names if name != CLINICIANS}
    verdicts, own = {name: part.verdict for name, part in parts.items()}, pair.contrast
    verdict, same = join_verdicts(verdicts), False
    if len(parts) == 2:
        first, second = (part.policy for part in parts.values())
        between = judge_difference(log, first, second, own, judged.estimator)
        verdict = join_verdicts(verdicts, between)
        same = np.array_equal(first.probabilities, second.probabilities)
        same = same and np.array_equal(first.weight, second.weight)
    elif about.mean_loss is None:
        words = "hidden: it would give a few people away"
        label, nothing = verdict.label, Figure()
        return PairResult(*names, nothing, None, None, None, label, (), "unknown", words)
    seen = any(judged.followed[name].in_sample for name in parts)
    conclusion = conclude_pair(pair, verdict, about, in_sample=seen)
    return PairResult(
        *names,
        difference=difference_figure(own),
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
    if not pair.differs:
        words = "no difference shown"
    else:
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
    made = [fit(data.subset(sources == label)) for label in runs]
    logs = [own.log for own in made]
    joined = Log(
        loss=np.concatenate([log.loss for log in logs]),
        action=np.concatenate([log.action for log in logs]),
        propensity=np.concatenate([log.propensity for log in logs]),
        cluster=data.cluster,
        n_actions=logs[0].n_actions,
        propensities=_stacked(logs, "propensities"),
        predicted=_stacked(logs, "predicted"),
        propensity_floor=max(log.propensity_floor for log in logs),
        features=_stacked(logs, "features"),
        known=all(log.known for log in logs),
        lag=logs[0].lag,
        plain_propensity=_stacked(logs, "plain_propensity", instead="propensity"),
        plain_predicted=_stacked(logs, "plain_predicted", instead="predicted"),
    )
    notes = {f"{label}: {k}": v for label, own in zip(runs, made, strict=True)
             for k, v in own.notes.items()}  # fmt: skip
    return EvaluationLog(joined, notes, None)


def _stacked(logs: Sequence[Log], name: str, *, instead: str | None = None) -> NDArray[Any] | None:
    """An array of all logs; None where one has none, or, with `instead`, where none has any."""
    own = [getattr(log, name) for log in logs]
    if all(array is None for array in own) or (instead is None and any(a is None for a in own)):
        return None
    parts = [
        array if array is not None or instead is None else getattr(log, instead)
        for array, log in zip(own, logs, strict=True)
    ]
    return np.concatenate(parts)
