"""Compare policies with each other and with the clinicians, overall and place by place."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import Floats
from etips.data.history_rows import visible_rows
from etips.data.trajectories import Trajectories
from etips.errors import SettingError
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
from etips.evaluation.log import Log, View, view
from etips.evaluation.risk import logged_risk
from etips.evaluation.verdict import Verdict
from etips.files.json_documents import finite, plain
from etips.machine import still_products
from etips.results.comparison_result import (
    CLINICIANS,
    ComparedPolicy,
    Comparison,
    Figure,
    PairResult,
)
from etips.results.conclusions import Conclusion
from etips.results.decision_groups import By, group_decisions
from etips.results.evaluation_log import EvaluationLog, Models, make_log
from etips.results.followed_policies import RULE, Followed, Policy, follow, true_risk
from etips.results.further_checks import FurtherChecks
from etips.results.joined_log import join_logs
from etips.results.method_result import DataSummary
from etips.results.named_policies import GivenPolicies, name_policies
from etips.results.place_comparison import as_figure, compare_places
from etips.results.summaries import summarize_data
from etips.results.unseen import require_unseen_stays


@dataclass(frozen=True, eq=False)
class _Judged:
    """Policies as a log sees them, by name."""

    followed: Mapping[str, Followed]
    views: Mapping[str, View]
    assessments: Mapping[str, Assessment]
    clinicians: Estimate
    estimator: str

    @property
    def estimates(self) -> dict[str, Estimate]:
        own = {name: found.estimates[0] for name, found in self.assessments.items()}
        return {**own, CLINICIANS: self.clinicians}


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
        data: Logged stays that none of them learned from.
        by: Column of the data, or values by decision or stay: compare place by place too.
        reference: Compare every other policy with this one only; "clinicians" is one of them.
        target: Carry figures over to the case mix of this place alone.
        estimator: Of all risks; the evaluation's headline if left out.
        interval: How limits are made.
        models: How to cross-fit, on `data`, propensities that are not known and predicted losses.
        propensities: Known probability of every action, shape (n_decisions, n_actions).
        allow_seen: Take stays that a policy learned from; the results say so.
        settings: For the record, JSON-ready.
        sources: Of each stay, where `data` were joined: each is then fitted by itself.
    """
    started, named = time.perf_counter(), _named(policies, by, reference, target)
    seen = require_unseen_stays(named, data, allow_seen=allow_seen)
    data = FurtherChecks.of(data, None).data
    grouping = None if by is None else group_decisions(data, by)
    followed = {name: seen[name].mark(follow(policy, data)) for name, policy in named.items()}
    made = join_logs(data, sources, partial(_log, named, models=models, known=propensities))
    judged, about = _judge(followed, made.log, estimator, interval), summarize_data(data)
    asked = partial(compare_places, data, made.log, judged.views, target=target, interval=interval)
    return Comparison(
        data=about,
        policies=_policies(judged, data, about),
        pairs=_pairs(judged, made.log, about, reference, interval),
        estimator=judged.estimator,
        reference=reference,
        places=None if grouping is None else asked(grouping, estimator=judged.estimator),
        notes=made.notes,
        settings=_plain(settings),
        seconds=time.perf_counter() - started,
    )


def _plain(settings: Mapping[str, object]) -> dict[str, object]:
    return {name: plain(value) for name, value in settings.items()}


def _named(
    policies: GivenPolicies | None, by: By | None, reference: str | None, target: str | None
) -> dict[str, Policy]:
    """Policies by name; what nobody can answer is refused, before anything is fitted."""
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
    """The decisions; where nobody asks about a policy, nothing has to be fitted."""
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
    return _Judged(
        followed=followed,
        views={name: view(log, *own.deployed.judged) for name, own in followed.items()},
        assessments=assessments,
        clinicians=logged_risk(log.loss, log.clusters, interval=interval),
        estimator=entry.name,
    )


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
    pairs = compare_pairs(judged.estimates, reference=reference, interval=interval)
    return tuple(_pair(pair, judged, log, about) for pair in pairs)


def _pair(pair: Pair, judged: _Judged, log: Log, about: DataSummary) -> PairResult:
    verdict = _verdict(pair, judged, log)
    names = (pair.first, pair.second)
    seen = any(name != CLINICIANS and judged.followed[name].in_sample for name in names)
    if about.mean_loss is None and CLINICIANS in names:
        blank = Conclusion("unknown", "hidden: it would give a few people away")
        return PairResult(
            *names, Figure(), None, None, None, verdict.label, (), blank.kind, blank.words
        )
    own = pair.contrast
    conclusion = conclude_pair(pair, verdict, about, in_sample=seen)
    if _do_the_same(judged.views.get(pair.first), judged.views.get(pair.second)):
        conclusion = Conclusion(conclusion.kind, "they do the same")
    return PairResult(
        *names,
        difference=Figure(
            finite(own.difference), finite(own.low), finite(own.high), finite(own.std_error)
        ),
        p_value=finite(pair.p_value),
        adjusted_p=finite(pair.adjusted_p),
        differs=pair.differs,
        verdict=verdict.label,
        reasons=verdict.reasons,
        finding=conclusion.kind,
        words=conclusion.words,
    )


def _do_the_same(first: View | None, second: View | None) -> bool:
    """Whether two policies do the same at every decision."""
    if first is None or second is None:
        return False
    alike = np.array_equal(first.probabilities, second.probabilities)
    return alike and np.array_equal(first.weight, second.weight)


def _verdict(pair: Pair, judged: _Judged, log: Log) -> Verdict:
    names = [name for name in (pair.first, pair.second) if name != CLINICIANS]
    parts = {name: judged.assessments[name].verdict for name in names}
    if len(names) < 2:
        return join_verdicts(parts)
    first, second = (judged.views[name] for name in names)
    own = judge_difference(log, first, second, pair.contrast, judged.estimator)
    return join_verdicts(parts, own)


def conclude_pair(
    pair: Pair, verdict: Verdict, about: DataSummary, *, in_sample: bool = False
) -> Conclusion:
    """What may be said of a pair; the verdict has a say, and so has what one decision is.

    Args:
        pair: The difference.
        verdict: On it.
        about: What it was estimated on.
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
