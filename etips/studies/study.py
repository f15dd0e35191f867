"""A study from its experiment to its results: tasks done once, then tables, charts and exhibits."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from etips.data.trajectories import Trajectories
from etips.disclosure import tells_few
from etips.files.json_documents import read_document
from etips.learn.fitting.prepare import choose_device
from etips.learn.learners.catalogue import DEFAULT, require_method
from etips.learn.learners.recipes import make_learner, setting_kinds
from etips.progress import Progress, duration
from etips.results.assembly import make_exhibits
from etips.results.data_summary import summarize_data
from etips.results.records import DataSummary, Record
from etips.results.study_result import FitRecord, FoldResult, Measures, StudyRecord, StudyResult
from etips.results.summaries import shown_path
from etips.runs.tasks import Clock, Json, Task, recorded, run_tasks
from etips.studies.experiment import Experiment, Settings
from etips.studies.findings import Findings, gather
from etips.studies.paper_tables import make_charts, make_tables
from etips.studies.study_data import DATA, Dealing, FolderData, StudyData, data_of, open_log
from etips.studies.study_tasks import make_plan

TASKS = "tasks"
"""Folder of a study's tasks, beside its results."""

HEADLINES = (DEFAULT, "etips")
"""The policies that a report is about: the first that is among the methods."""

EVALUATING = {"table1": 0.01, "table2": 0.25}
"""Share of a study's time, on two cores, in which one process evaluates what all tasks found."""

TELL_FROM = 600.0
"""Seconds; what takes less is not announced."""

_PROBE = "predictive"  # a method that trains one kind of network and nothing else
_STAYS, _EPOCHS, _FOLDS = 1_000, 4, 2  # of a short training: fewer fill no batch, and cost more


def run_study(
    experiment: Experiment,
    folder: Path,
    *,
    data: Path | None = None,
    external: Path | None = None,
    device: str = "auto",
    jobs: int = 1,
    cluster: str | None = None,
    report: Progress | None = None,
    span: tuple[float, float] = (0.0, 1.0),
    announce: Callable[[str], None] | None = None,
) -> StudyResult:
    """Do what is left of a study and return its results.

    Interrupted, the same call goes on where it stopped; finished tasks are not done again.

    Args:
        folder: Gets the tasks; it must exist.
        data: A Trajectories folder, in place of the experiment's world.
        external: Another such folder, that every policy is tested on too.
        device: auto, cpu or cuda.
        jobs: Processes at a time.
        cluster: Address of a Ray cluster, in place of local processes.
        report: Is given what is going on and which share of the study is done.
        span: Share of the whole before this study and after it, where it is one of several.
        announce: Is given before the long part how long it may take, if that is long.
    """
    source = data_of(experiment, data)
    outside = None if external is None else FolderData.of(external, experiment.lag)
    waves = make_plan(experiment, source, device=device, external=outside)
    tasks, judging = folder / TASKS, EVALUATING[experiment.table]
    cost = sum(task.cost for wave in waves for task in wave)
    clock = Clock(cost / (1 - judging), report, span)
    found: dict[str, Json] = {}
    for number, wave in enumerate(waves):
        if number == 1 and cluster is None and (announce or report):
            seconds = forecast(experiment, source, waves, tasks, device=device, jobs=jobs)
            if seconds is not None:
                whole = seconds / (1 - judging)
                clock.expect(whole)
                if announce is not None and whole >= TELL_FROM:
                    announce(
                        f"this may take about {duration(whole)} on this machine; "
                        "interrupted, the same command goes on where it stopped"
                    )
        lent = sorted({name for task in wave for name in task.needs})
        inputs = [DATA, *lent] if number else []
        found |= run_tasks(wave, tasks, jobs=jobs, cluster=cluster, inputs=inputs, clock=clock)
    clock.began("evaluating")
    began = time.perf_counter()
    records = [recorded(task, tasks / task.name) for wave in waves for task in wave]
    result = summarize_study(
        gather(experiment, source, tasks, found, outside),
        seconds=sum(record.seconds for record in records if record is not None),
        cohort=None if data is None else read_document(data / "funnel.json"),
    )
    clock.done("evaluating", cost * judging / (1 - judging), time.perf_counter() - began)
    return result


def forecast(
    experiment: Experiment,
    data: StudyData,
    waves: Sequence[Sequence[Task]],
    folder: Path,
    *,
    device: str,
    jobs: int,
) -> float | None:
    """Seconds that what is left of a study takes if no network stops early; None if not known.

    Passes of networks alone are counted: a study of few stays takes longer, since evaluating and
    starting processes weigh more there. A GPU is not asked: there a pass costs next to nothing and
    networks share it, so that passes tell little.
    """
    if choose_device(device).type != "cpu":
        return None
    left = [
        task.cost for wave in waves for task in wave if recorded(task, folder / task.name) is None
    ]
    if sum(left) < _EPOCHS * _FOLDS:
        return None
    log = open_log(data, folder)
    part = log if log.n_stays <= _STAYS else log.subset(slice(0, _STAYS))
    dealing = Dealing(experiment.table, experiment.folds, experiment.seed)
    share = float(dealing.part(log, 0).learn.mean())  # of the stays, that a fold learns from
    settings = next((own for own in experiment.methods.values() if own), {})
    per_pass = seconds_a_pass(part, settings) * share * log.n_steps / part.n_steps
    at_once = max(1, min(jobs, os.cpu_count() or 1, len(left)))
    return per_pass * max(sum(left) / at_once, max(left))


def seconds_a_pass(stays: Trajectories, settings: Settings) -> float:
    """Seconds that one network takes to read the stays once, as the later epochs show."""
    known = setting_kinds(require_method(_PROBE))
    shape = {key: value for key, value in settings.items() if key in known and "." not in key}
    short = {"epochs": _EPOCHS, "patience": _EPOCHS, "n_folds": _FOLDS}
    moments: list[float] = []
    learner = make_learner(_PROBE, {**shape, **short}, device="cpu")
    learner.fit(stays, report=lambda _: moments.append(time.perf_counter()))
    return (moments[-1] - moments[0]) / max(len(moments) - 1, 1) / (_FOLDS - 1)


def summarize_study(
    findings: Findings, *, seconds: float, cohort: Record | None = None
) -> StudyResult:
    """The result of a finished study: an evaluation, with tables and charts beside."""
    experiment, pooled = findings.experiment, findings.pooled
    exhibits = make_exhibits(
        findings.data,
        findings.log,
        {method: own.deployed for method, own in pooled.items()},
        headline=next(name for name in (*HEADLINES, *pooled) if name in pooled),
        paths={method: findings.mean_path(method) for method in pooled},
        settings=experiment.to_json(),
        cohort=cohort,
    )
    about = summarize_data(findings.data, cohort)
    folds = {
        method: tuple(
            FoldResult(**vars(measures), **vars(_shown(fit, measures, about)))
            for measures, fit in zip(own, findings.fits[method], strict=True)
        )
        for method, own in findings.measures.items()
    }
    short = "QUICK RUN: fewer samples, folds, translations and epochs; its figures say little. "
    return StudyResult(
        data=about,
        methods=tuple(findings.assessed),
        seconds=seconds,
        exhibits=exhibits,
        title=experiment.title,
        lead=f"{short * experiment.quick}Preset {experiment.preset}: {experiment.lead}",
        tables=tuple(make_tables(findings)),
        charts=tuple(make_charts(findings)),
        study=StudyRecord(experiment.to_json(), folds),
    )


def _shown(fit: FitRecord, measures: Measures, about: DataSummary) -> FitRecord:
    """A fit without sizes that tell of a few: stays beside decisions, or all stays by their sum."""
    decisions = None
    if measures.n_matched is not None and measures.n_unmatched is not None:
        decisions = measures.n_matched + measures.n_unmatched
    held, path = fit.n_held_out or 0, shown_path(fit.path)
    if about.n_stays is None or (decisions is not None and tells_few(held, (decisions,))):
        return replace(fit, path=path, n_learned_from=None, n_held_out=None)
    return replace(fit, path=path)
