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
from etips.learn.fitting.stages import Training
from etips.learn.learners.catalogue import find_method
from etips.learn.training.settings import Settings
from etips.models.encoders.gru import GRU
from etips.results.data_summary import summarize_data
from etips.results.evaluate import assess_policies
from etips.results.evaluation_log import Models, make_log
from etips.results.followed_policies import Followed
from etips.results.records import MethodResult
from etips.results.study_result import FitRecord, Measures
from etips.results.summaries import restore_path
from etips.results.whole_stay_evaluation import Throughout, assess_throughout
from etips.runs.tasks import Json
from etips.studies.experiment import Experiment
from etips.studies.fits import EXTERNAL, fit_record, join_folds, load_followed, mix_folds
from etips.studies.measures import mean_of, measure_policy
from etips.studies.outcome_fits import PREDICTED, PROPENSITIES
from etips.studies.plan import EVALUATION, task_name
from etips.studies.study_data import (
    Dealing,
    FolderData,
    StudyData,
    load_array,
    open_external,
    open_log,
)

EXTERNAL_COLUMNS = ("external risk", "external change", "external verdict")
"""What a table says of each policy there."""

_STAY_ENCODER = GRU(16, embed=16)
_STAY_TRAINING = Settings(epochs=3, learning_rate=5e-3, dropout=0.1)
"""Small, since a study asks for minutes: rounds take two or three epochs each anyway."""


@dataclass(frozen=True, eq=False)
class ExternalTest:
    """What the policies come to on another source.

    Args:
        data: Its stays, read as those of the study.
        assessed: Each method there, by name: one of its folds' policies, drawn at random.
    """

    data: Trajectories
    assessed: Mapping[str, MethodResult]

    def cells(self, method: str) -> list[str]:
        """One for each of `EXTERNAL_COLUMNS`."""
        own = self.assessed[method]
        head, gain = own.estimates[0], own.gain
        risk = _limits(head.risk, head.low, head.high, "")
        change = "-" if gain is None else _limits(gain.difference, gain.low, gain.high, "+")
        return [risk, change, str(own.verdict)]

    @property
    def note(self) -> str:
        """What a reader must know of the columns."""
        about = summarize_data(self.data)
        n = "" if about.n_decisions is None else f" {about.n_decisions:,} decisions,"
        loss = "hidden" if about.mean_loss is None else f"{about.mean_loss:.4f}"
        where = self.data.schema.provenance.get("cohort", "another source")
        return (
            f" External: {where},{n} mean logged loss {loss}; risk of one of the folds' policies "
            "drawn at random and its change against the clinicians there, with 95 % limits, by "
            "propensities fitted there and doses in the classes of the data above."
        )


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
    apart = dealing.has_test_part
    all_folds = range(experiment.folds)
    held = [dealing.part(whole, fold).held for fold in all_folds]
    data = whole.subset(held[0]) if apart else whole
    log, notes = _log(experiment, data, tasks / EVALUATION)
    folds = [np.ones(data.n_decisions, bool)] * experiment.folds
    if not apart:
        folds = [mask[data.decisions().stay] for mask in held]
    policies = {
        method: [load_followed(tasks / task_name(method, n)) for n in all_folds]
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
        pooled=pooled,
        measures=_measure(data, log, policies, folds if not apart else None),
        assessed=assess_policies(pooled, log, data, notes=notes, stays=stays),
        fits={
            method: [fit_record(findings[task_name(method, fold)]) for fold in all_folds]
            for method in experiment.methods
        },
        notes=notes,
        external=None
        if external is None
        else _test_externally(experiment, open_external(external, whole.schema), tasks),
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
    # Rows of the table that are no learner's are not in the catalogue.
    draws = {m: (entry := find_method(m)) is not None and entry.draws for m in policies}
    return {
        method: [
            measure_policy(part, held, own, answers=answer if draws[method] else None)
            for (part, held), own, answer in zip(parts, policy, answers, strict=True)
        ]
        for method, policy in policies.items()
    }


def stay_outcomes(
    experiment: Experiment, policies: Mapping[str, Followed], log: Log, data: Trajectories
) -> dict[str, Throughout]:
    """What becomes of stays under the policies that the study wants to see decide throughout."""
    wanted = {name: policies[name].deployed for name in experiment.whole_stay if name in policies}
    if not wanted:
        return {}
    training = Training(n_folds=2, outcome=_STAY_TRAINING)
    models = Models(encoder=_STAY_ENCODER, training=training, seed=experiment.seed)
    return assess_throughout(wanted, log, data, models, "sum")


def show_stay(method: MethodResult) -> str:
    """The change over a whole stay as a table prints it; a dash where nobody looked."""
    whole = method.whole_stay
    if whole is None or whole.gain.difference is None:
        return "-"
    gain = whole.gain
    limits = "" if gain.low is None or gain.high is None else f" [{gain.low:.3f}, {gain.high:.3f}]"
    return f"{gain.difference:+.3f}{limits}, {whole.verdict}"


def _limits(value: float | None, low: float | None, high: float | None, sign: str) -> str:
    if value is None or low is None or high is None:
        return "-"
    return f"{value:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"
