"""A study from its experiment to its results: tasks done once, then tables, charts and exhibits."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from etips.disclosure import tells_few
from etips.files.json_documents import read_document
from etips.progress import Progress, duration, no_progress
from etips.results.assembly import make_exhibits
from etips.results.exhibits import Record
from etips.results.results import DataSummary
from etips.results.study_result import (
    FitRecord,
    FoldResult,
    Measures,
    StudyRecord,
    StudyResult,
)
from etips.results.summaries import summarize_data
from etips.results.translation_path import shown_path
from etips.studies.charts import make_charts
from etips.studies.experiment import Experiment
from etips.studies.findings import Findings, gather
from etips.studies.forecast import TELL_FROM, forecast
from etips.studies.paper_tables import make_tables
from etips.studies.plan import EVALUATING, costs, make_plan
from etips.studies.study_data import DATA, FolderData, data_of
from etips.tasks.runner import join_waves, run_tasks
from etips.tasks.task import Json, Task, recorded
from etips.tasks.time_left import StudyProgress

TASKS = "tasks"
"""Folder of a study's tasks, beside its results."""

HEADLINE = "etips"
"""The policy that a report is about, where it is among the methods."""

_FUNNEL = "funnel.json"


def run_study(
    experiment: Experiment,
    folder: Path,
    *,
    data: Path | None = None,
    external: Path | None = None,
    device: str = "auto",
    jobs: int = 1,
    cluster: str | None = None,
    report: Progress | StudyProgress | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    announce: Callable[[str], None] | None = None,
) -> StudyResult:
    """Do what is left of a study and return its results.

    Interrupted, the same call goes on where it stopped; finished tasks are not done again.

    Args:
        experiment: What to study.
        folder: Gets the tasks; it must exist.
        data: A Trajectories folder, in place of the experiment's world.
        external: Another such folder, that every policy is tested on too.
        device: auto, cpu or cuda.
        jobs: Processes at a time.
        cluster: Address of a Ray cluster, in place of local processes.
        report: Told what is going on and which share of the study is done.
        span: Share of the whole before this study and after it, where it is one of several.
        announce: Told before the long part how long it may take, if that is long.
    """
    source = data_of(experiment, data)
    outside = None if external is None else FolderData.of(external, experiment.lag)
    first, *later = make_plan(experiment, source, device=device, external=outside)
    waves = [first, *join_waves(later, cluster=cluster)]
    tasks, judging = folder / TASKS, EVALUATING[experiment.table]
    shares = costs(waves, span, evaluating=judging)
    tell = StudyProgress(report) if callable(report) else report
    left: dict[str, Json] = {}
    for number, wave in enumerate(waves):
        if number == 1 and cluster is None and (announce or tell):
            seconds = forecast(experiment, source, waves, tasks, device=device, jobs=jobs)
            _tell_ahead(seconds and seconds / (1 - judging), tell, announce)
        told = None if tell is None else tell.between(shares[number], shares[number + 1])
        inputs = _inputs(wave)
        left |= run_tasks(wave, tasks, jobs=jobs, cluster=cluster, inputs=inputs, report=told)
    told = no_progress if tell is None else tell.between(shares[-1], span[1])
    told("evaluating", 0.0)
    findings = gather(experiment, source, tasks, left, outside)
    result = summarize_study(findings, seconds=_spent(waves, tasks), cohort=_cohort(data))
    told("evaluating", 1.0)
    return result


def _tell_ahead(
    seconds: float | None, tell: StudyProgress | None, announce: Callable[[str], None] | None
) -> None:
    """Say before the long part how long it may take, if that is known."""
    if seconds is not None and tell is not None:
        tell.expect(seconds)
    if seconds is not None and announce is not None and seconds >= TELL_FROM:
        announce(_warning(seconds))


def summarize_study(
    findings: Findings, *, seconds: float, cohort: Record | None = None
) -> StudyResult:
    """The result of a finished study: an evaluation, with tables and charts beside."""
    experiment = findings.experiment
    headline = HEADLINE if HEADLINE in findings.pooled else next(iter(findings.pooled))
    exhibits = make_exhibits(
        findings.data,
        findings.log,
        {method: own.deployed for method, own in findings.pooled.items()},
        headline=headline,
        paths={method: findings.mean_path(method) for method in findings.pooled},
        settings=experiment.to_json(),
        cohort=cohort,
    )
    about = summarize_data(findings.data, cohort)
    return StudyResult(
        data=about,
        methods=tuple(findings.assessed),
        seconds=seconds,
        exhibits=exhibits,
        title=experiment.title,
        lead=lead(experiment),
        tables=tuple(make_tables(findings)),
        charts=tuple(make_charts(findings)),
        study=StudyRecord(experiment.to_json(), _folds(findings, about)),
    )


def lead(experiment: Experiment) -> str:
    """What a reader must know before the figures."""
    short = "QUICK RUN: fewer samples, folds, translations and epochs; its figures say little. "
    return f"{short if experiment.quick else ''}Preset {experiment.preset}: {experiment.lead}"


def _warning(seconds: float) -> str:
    return (
        f"this may take about {duration(seconds)} on this machine; interrupted, the same command "
        "goes on where it stopped"
    )


def _folds(findings: Findings, about: DataSummary) -> dict[str, tuple[FoldResult, ...]]:
    """Of each method what every fold scored, and what its task said."""
    return {
        method: tuple(
            FoldResult(**vars(measures), **vars(_shown(fit, measures, about)))
            for measures, fit in zip(own, findings.fits[method], strict=True)
        )
        for method, own in findings.measures.items()
    }


def _shown(fit: FitRecord, measures: Measures, about: DataSummary) -> FitRecord:
    """A fit without sizes that tell of a few: stays beside decisions, or all stays by their sum."""
    decisions = None
    if measures.n_matched is not None and measures.n_unmatched is not None:
        decisions = measures.n_matched + measures.n_unmatched
    held, path = fit.n_held_out or 0, shown_path(fit.path)
    if about.n_stays is None or (decisions is not None and tells_few(held, (decisions,))):
        return replace(fit, path=path, n_learned_from=None, n_held_out=None)
    return replace(fit, path=path)


def _inputs(wave: Sequence[Task]) -> list[str]:
    """Folders of earlier tasks that those of a wave read."""
    lent = {name for task in wave for name in task.work.lenders} - {task.name for task in wave}
    return [] if wave[0].name == DATA else [DATA, *sorted(lent)]


def _spent(waves: Sequence[Sequence[Task]], tasks: Path) -> float:
    """Seconds that all tasks took together, as far as they are done."""
    records = (recorded(task, tasks / task.name) for wave in waves for task in wave)
    return sum(record.seconds for record in records if record is not None)


def _cohort(data: Path | None) -> Record | None:
    return None if data is None else read_document(data / _FUNNEL)
