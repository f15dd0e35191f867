"""What the tasks of a study found, put together: a log to weigh with, every fold's policy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from etips.data.decisions import Bools
from etips.data.trajectories import Trajectories
from etips.evaluation.log import Log
from etips.files.json_documents import finite
from etips.learn.fitting.candidates import Candidate
from etips.learn.fitting.folds_at_once import AtOnce
from etips.learn.learners.catalogue import find_method
from etips.results.evaluate import assess_policies
from etips.results.followed_policies import Followed
from etips.results.results import MethodResult
from etips.results.study_result import FitRecord, Measures
from etips.results.translation_path import restore_path
from etips.studies.experiment import Experiment
from etips.studies.external_test import ExternalTest
from etips.studies.fit_records import fit_from_json
from etips.studies.fold_policies import join_folds, load_followed, mix_folds
from etips.studies.folds import Dealing
from etips.studies.measures import mean_of, measure_policy
from etips.studies.outcome_fits import BALANCE, PREDICTED, PROPENSITIES
from etips.studies.plan import EVALUATION, task_name
from etips.studies.stay_outcomes import stay_outcomes
from etips.studies.study_data import FolderData, StudyData, load_array, open_log
from etips.tasks.task import Json


@dataclass(frozen=True, eq=False)
class Findings:
    """Everything a table, a chart or a report of the study is made from.

    Args:
        experiment: What was studied.
        data: The decisions that policies are judged on: the test part, or all of the log.
        log: The same with propensities and predicted losses.
        policies: Of each method what its policies do, fold by fold, where they were held out.
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
    policies: Mapping[str, Sequence[Followed]]
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
                same = (candidate.action, candidate.acts, candidate.clinicians)
                numbers = (finite(candidate.translation), finite(candidate.strength))  # NaN differs
                key = (candidate.form, *numbers, *same)
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
    """Read what the tasks left.

    Args:
        experiment: What was studied.
        source: Its data.
        tasks: Folder with one folder a task.
        findings: What each task found, by its name.
        external: Another source, which the tasks have answered too.
    """
    whole = open_log(source, tasks)
    dealing = Dealing(experiment.table, experiment.folds, experiment.seed)
    apart = dealing.has_test_part
    held = [dealing.part(whole, fold).held for fold in range(experiment.folds)]
    data = whole.subset(held[0]) if apart else whole
    log, notes = _log(experiment, data, tasks / EVALUATION)
    if BALANCE in (fitted := findings.get(EVALUATION, {})):
        notes[BALANCE] = str(fitted[BALANCE])
    folds = [np.ones(data.n_decisions, bool)] * experiment.folds
    if not apart:
        folds = [mask[data.decisions().stay] for mask in held]
    policies = {
        method: [load_followed(tasks / task_name(method, n)) for n in range(experiment.folds)]
        for method in experiment.methods
    }
    pooled = {
        method: mix_folds(own, log.propensities) if apart else join_folds(own, folds)
        for method, own in policies.items()
    }
    stays = stay_outcomes(experiment, pooled, log, data)
    return Findings(
        experiment=experiment,
        data=data,
        log=log,
        policies=policies,
        pooled=pooled,
        measures=_measure(data, log, policies, folds if not apart else None),
        assessed=assess_policies(pooled, log, data, notes=notes, stays=stays),
        fits=_fits(experiment, findings),
        notes=notes,
        external=ExternalTest.of(experiment, external, tasks, whole.schema),
    )


def _fits(experiment: Experiment, findings: Mapping[str, Json]) -> dict[str, list[FitRecord]]:
    """What the fits of each method left on record, fold by fold."""
    folds = range(experiment.folds)
    return {
        method: [fit_from_json(findings[task_name(method, fold)]) for fold in folds]
        for method in experiment.methods
    }


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
        folds=AtOnce(),
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
    return {
        method: [
            measure_policy(part, held, own, answers=answer if _draws(method) else None)
            for (part, held), own, answer in zip(parts, policy, answers, strict=True)
        ]
        for method, policy in policies.items()
    }


def _draws(method: str) -> bool:
    entry = find_method(method)  # rows of the table that are no learner's are not in the catalogue
    return entry is not None and entry.draws
