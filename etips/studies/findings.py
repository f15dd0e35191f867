"""What the tasks of a study found, put together: a log, every fold's policy, and their figures."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.data.trajectories import Trajectories
from etips.disclosure import FEW, shown_parts
from etips.evaluation.estimators import find_estimators
from etips.evaluation.inference.estimate import atenp
from etips.evaluation.log import Log, view
from etips.evaluation.risk import matching_factor
from etips.files.json_documents import finite
from etips.learn.fitting.candidates import Candidate
from etips.learn.fitting.stages import Training
from etips.learn.learners.catalogue import find_method
from etips.learn.training.settings import Settings
from etips.models.encoders.gru import GRU
from etips.policies.deployed import Deployed
from etips.results.data_summary import summarize_data
from etips.results.evaluate import Throughout, assess_policies, assess_throughout
from etips.results.evaluation_log import Models, make_log
from etips.results.followed_policies import Followed, as_followed, true_risk
from etips.results.records import MethodResult
from etips.results.study_result import FitRecord, Measures
from etips.results.summaries import restore_path
from etips.runs.tasks import Json
from etips.studies.experiment import Experiment
from etips.studies.study_data import (
    Dealing,
    FolderData,
    StudyData,
    load_array,
    open_external,
    open_log,
)
from etips.studies.study_tasks import (
    EVALUATION,
    EXTERNAL,
    PREDICTED,
    PROPENSITIES,
    fit_record,
    join_folds,
    load_followed,
    mix_folds,
    task_name,
)

_STAY_MODELS = Models(
    encoder=GRU(16, embed=16),
    training=Training(n_folds=2, outcome=Settings(epochs=3, learning_rate=5e-3, dropout=0.1)),
)
"""Small, since a study asks for minutes: rounds take two or three epochs each anyway."""


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over folds; NaN without folds, or with one."""

    mean: float
    deviation: float

    def show(self, places: int = 3) -> str:
        """As tables print it."""
        if math.isnan(self.mean):
            return "-"
        if math.isnan(self.deviation):
            return f"{self.mean:z.{places}f}"
        return f"{self.mean:z.{places}f} ± {self.deviation:.{places}f}"


def spread(values: Iterable[float | None]) -> Spread:
    """Mean and sample standard deviation of those that are numbers."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return Spread(
        float(np.mean(known)) if known else math.nan,
        float(np.std(known, ddof=1)) if len(known) > 1 else math.nan,
    )


def mean_of(values: Iterable[float | None]) -> float:
    """Mean of those that are numbers; NaN without any."""
    return spread(values).mean


def over_folds(measures: Sequence[Measures], figure: Callable[[Measures], float | None]) -> Spread:
    """Mean and standard deviation of one figure over the folds that have it."""
    return spread(map(figure, measures))


def show_groups(measures: Sequence[Measures]) -> str:
    """Mean sizes of the two groups of ATENP, or that one of them is too small to show.

    The two add up to a known number, so either is hidden with the other.
    """
    if any(fold.n_matched is None for fold in measures):
        return f"one {FEW}"
    matched = over_folds(measures, lambda fold: fold.n_matched)
    unmatched = over_folds(measures, lambda fold: fold.n_unmatched)
    return f"{matched.mean:,.0f} / {unmatched.mean:,.0f}"


@dataclass(frozen=True, eq=False)
class ExternalTest:
    """What the policies come to on another source.

    Args:
        data: Its stays, read as those of the study.
        assessed: Each method there, by name: one of its folds' policies, drawn at random.
    """

    data: Trajectories
    assessed: Mapping[str, MethodResult]


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything a table, a chart or a report of the study is made from.

    Args:
        data: The decisions that policies are judged on: the test part, or all of the log.
        log: The same with propensities and predicted losses.
        pooled: Of each method one policy on all of `data`.
        measures: Of each method the figures, fold by fold.
        assessed: Estimates, intervals and verdicts of `pooled`, in the same order.
        fits: Of each method what its fits left on record, fold by fold.
        notes: Where propensities and predicted losses came from.
        external: The same policies on another source, where one was given.
    """

    experiment: Experiment
    data: Trajectories
    log: Log
    pooled: Mapping[str, Followed]
    measures: Mapping[str, Sequence[Measures]]
    assessed: Sequence[MethodResult]
    fits: Mapping[str, Sequence[FitRecord]]
    notes: Mapping[str, str]
    external: ExternalTest | None = None

    def path(self, method: str) -> list[tuple[Candidate, ...]]:
        """The candidates of a method, fold by fold; none where it has none."""
        return [restore_path(fit.path) for fit in self.fits[method]]

    @property
    def judged_on(self) -> str:
        """What the candidates of a path were compared on, in words."""
        rules = {own.get("selection") for own in self.experiment.methods.values()}
        if "paper" in rules:
            return "by their SNIPS risk on the part that they learned from"
        return "on what their networks did not learn from"

    @property
    def expected_factor(self) -> str:
        """What a sound matching factor is, in words."""
        if self.experiment.logging == "sampled":
            return "The matching factor is 1 in expectation."
        return (
            "The likeliest action had no alternative, so what is recorded as its propensity is "
            "none, and the matching factor need not be near 1."
        )

    def mean_path(self, method: str) -> list[Candidate]:
        """The candidates, figures averaged over folds; chosen is what most folds chose."""
        alike: dict[tuple[object, ...], list[Candidate]] = {}
        for path in self.path(method):
            for candidate in path:
                numbers = (finite(candidate.translation), finite(candidate.strength))  # NaN differs
                key = (candidate.form, *numbers, candidate.clinicians)
                alike.setdefault(key, []).append(candidate)
        votes = {key: sum(c.chosen for c in own) for key, own in alike.items()}
        most = max(votes, key=lambda key: votes[key], default=None)
        return [
            replace(
                own[0],
                risk=mean_of(c.risk for c in own),
                std_error=mean_of(c.std_error for c in own),
                matching_factor=mean_of(c.matching_factor for c in own),
                effective_size=mean_of(c.effective_size for c in own),
                chosen=key == most,
                corrected=finite(mean_of(c.corrected for c in own if c.chosen)),
                corrected_error=finite(mean_of(c.corrected_error for c in own if c.chosen)),
            )
            for key, own in alike.items()
        ]


def gather(
    experiment: Experiment,
    source: StudyData,
    tasks: Path,
    findings: Mapping[str, Json],
    external: FolderData | None = None,
) -> Findings:
    """Read what the tasks left."""
    whole = open_log(source, tasks)
    dealing = Dealing(experiment.table, experiment.folds, experiment.seed)
    apart, all_folds = dealing.has_test_part, range(experiment.folds)
    held = [dealing.part(whole, fold).held for fold in all_folds]
    data = whole.subset(held[0]) if apart else whole
    log, notes = _log(experiment, data, tasks / EVALUATION)
    # Of each fold which of the decisions it is judged on.
    folds = [np.ones(data.n_decisions, bool) if apart else m[data.decisions().stay] for m in held]
    policies = {
        method: [load_followed(tasks / task_name(method, n)) for n in all_folds]
        for method in experiment.methods
    }
    pooled = {
        method: mix_folds(own, log.propensities) if apart else join_folds(own, folds)
        for method, own in policies.items()
    }
    outside = None
    if external is not None:
        outside = _test_externally(experiment, open_external(external, whole.schema), tasks)
    stays = stay_outcomes(experiment, pooled, log, data)
    return Findings(
        experiment=experiment,
        data=data,
        log=log,
        pooled=pooled,
        measures=_measure(data, log, policies, folds if not apart else None),
        assessed=assess_policies(pooled, log, data, notes=notes, stays=stays),
        fits={
            method: [fit_record(findings[task_name(method, n)]) for n in all_folds]
            for method in experiment.methods
        },
        notes=notes,
        external=outside,
    )


def _test_externally(experiment: Experiment, data: Trajectories, tasks: Path) -> ExternalTest:
    made = make_log({}, data, Models(seed=experiment.seed))
    pooled = {}
    for method in experiment.methods:
        places = [tasks / task_name(method, fold) for fold in range(experiment.folds)]
        each = [load_followed(place, prefix=EXTERNAL) for place in places]
        pooled[method] = mix_folds(each, made.log.propensities)
    judged = assess_policies(pooled, made.log, data, notes=made.notes)
    return ExternalTest(data, {own.name: own for own in judged})


def _log(experiment: Experiment, data: Trajectories, folder: Path) -> tuple[Log, dict[str, str]]:
    """The decisions to judge on, weighed by known propensities or by those of the other folds."""
    propensities = None
    if data.propensity is not None:
        source = "known, from the logging policy"
        model = "learned from all samples outside the test part"
        if experiment.logging == "sampled":
            propensities = data.true_logging()
    else:
        propensities = load_array(folder / PROPENSITIES)
        source = model = "cross-fitted on the folds of the study"
    log = Log.of(
        data,
        propensities=propensities,
        predicted=load_array(folder / PREDICTED),
        floor=experiment.clip,
    )
    floor = f"{log.propensity_floor:g}"
    return log, {"propensities": source, "predicted losses": model, "clip": floor}


def _measure(
    data: Trajectories,
    log: Log,
    policies: Mapping[str, Sequence[Followed]],
    folds: Sequence[Bools] | None,
) -> dict[str, list[Measures]]:
    """Figures of every method and fold; without `folds` all are judged on all of the data."""
    n_folds = len(next(iter(policies.values())))
    parts = [(log, data)] * n_folds
    if folds is not None:
        stay = data.decisions().stay
        parts = [(log.take(mask), data.subset(np.unique(stay[mask]))) for mask in folds]
    # The paper draws the answers of its random policy, once, with this generator and seed.
    drawn = np.random.RandomState(0).randint(data.n_actions, size=data.n_decisions)
    answers = [drawn if folds is None else drawn[folds[fold]] for fold in range(n_folds)]
    # Rows of the table that are no learner's are not in the catalogue.
    draws = {m: (entry := find_method(m)) is not None and entry.draws for m in policies}
    return {
        method: [
            measure_policy(part, held, own, answers=answer if draws[method] else None)
            for (part, held), own, answer in zip(parts, policy, answers, strict=True)
        ]
        for method, policy in policies.items()
    }


def measure_policy(
    log: Log,
    held: Trajectories,
    policy: Floats | Deployed | Followed,
    *,
    answers: Ints | None = None,
) -> Measures:
    """The figures of a policy on one fold.

    Args:
        log: The held-out decisions with what it takes to weigh them.
        held: The same decisions; with labels as truth in the digit tasks.
        policy: What it does there, or the probabilities that it draws from, shape (n_decisions,
            n_actions).
        answers: Actions the policy took, where it draws them; its likeliest if left out. Accuracy
            and ATENP are about these.
    """
    followed = as_followed(policy)
    deployed, drawn = followed.deployed, followed.drawn or followed.deployed
    seen = view(log, *deployed.judged)
    snips, ips, dr = (
        entry.estimate(log, seen).risk for entry in find_estimators(("snips", "ips", "dr"), log)
    )
    taken = drawn.probabilities.argmax(axis=1) if answers is None else answers
    answered = np.eye(held.n_actions)[taken]
    matched = atenp(log.loss, log.action, answered, log.clusters)
    n_matched, n_unmatched = shown_parts(matched.n_matched, matched.n_unmatched)
    return Measures(
        # Where the loss is 1 for a wrong label.
        accuracy=None if held.truth is None else 1 - held.true_risk(answered),
        matching_factor=finite(matching_factor(seen.weight, log.clusters).risk),
        snips=finite(snips),
        ips=finite(ips),
        dr=finite(dr),
        atenp=finite(matched.difference),
        n_matched=n_matched,
        n_unmatched=n_unmatched,
        risk=true_risk(deployed, held),
        drawn_risk=true_risk(drawn, held),
    )


def stay_outcomes(
    experiment: Experiment, policies: Mapping[str, Followed], log: Log, data: Trajectories
) -> dict[str, Throughout]:
    """What becomes of stays under the policies that the study evaluates throughout a stay."""
    wanted = {name: policies[name].deployed for name in experiment.whole_stay if name in policies}
    if not wanted:
        return {}
    return assess_throughout(wanted, log, data, replace(_STAY_MODELS, seed=experiment.seed), "sum")


def about(data: Trajectories) -> str:
    """Another source in a few words: where it is from, its size and its mean loss."""
    summary = summarize_data(data)
    n = "" if summary.n_decisions is None else f" {summary.n_decisions:,} decisions,"
    loss = "hidden" if summary.mean_loss is None else f"{summary.mean_loss:.4f}"
    return f"{data.schema.provenance.get('cohort', 'another source')},{n} mean logged loss {loss}"
