"""Search for the settings of a learner: held-out risk with the guard of the default selection."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from etips.data.trajectories import Trajectories
from etips.errors import FileError, SettingError
from etips.evaluation.censoring import complete_losses
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import canonical
from etips.files.lock import LOCK_NAME, Lock
from etips.files.toml import format_toml
from etips.files.writing import write_file
from etips.learn.learners.catalogue import DEFAULT
from etips.learn.learners.ranges import Space
from etips.learn.learners.recipes import Recipe
from etips.progress import Progress
from etips.runs.tasks import Clock, Json, Task, run_tasks
from etips.studies.proposals import Proposals, importance, open_proposals
from etips.studies.space import check_space, is_free, searched_part, usual_space
from etips.studies.trials import DATA, TrialRecord, TrialsTask, read_trials

STORAGE, TRIALS, BEST, ALL = "search.db", "trials", "best.toml", "trials.json"
"""What a search's folder holds: Optuna's file, a folder a trial, the result, all trials."""

BATCH = 4
"""Trials proposed together. The result depends on it, so it does not follow the number of jobs."""

FIT_FACTOR, FIT_SLACK = 1.05, 0.01
"""How much worse than the best of the search a trial's propensities may fit held-out stays. Weights
made of propensities that do not fit can make any policy look good."""


@dataclass(frozen=True)
class Search:
    """What to search, and how.

    Args:
        space: Values of its settings; the usual ones if left empty.
        n_trials: How many to try; more of them later go on from there.
        batch: How many are proposed together, knowing those before.
        bundle: How many of them in a row share a shape, and train one after another: they
            differ in learning rates and weight decays alone.
    """

    method: str = DEFAULT
    space: Space = field(default_factory=dict)
    n_trials: int = 20
    batch: int = BATCH
    bundle: int = 1
    device: str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "space", self.space or usual_space(self.method))
        for name in ("n_trials", "batch", "bundle"):
            if getattr(self, name) < 1:
                raise SettingError(name, "must be at least 1")
        for name in ("n_trials", "batch"):
            if getattr(self, name) % self.bundle:
                raise SettingError(name, f"must be a multiple of bundle, {self.bundle}")
        if self.bundle > 1 and not any(map(is_free, searched_part(self.space))):
            rule = "must be 1 where neither learning_rate nor weight_decay is searched"
            raise SettingError("bundle", rule)
        check_space(self.method, self.space)


@dataclass(frozen=True)
class Trial:
    """Some settings, and what came of them.

    Args:
        number: From 0, in the order of the proposals.
        record: What held-out stays say of it.
        value: Risk plus some standard errors, by which trials are compared; infinite if in doubt.
        doubt: What its risk cannot be believed for: "weights" (matching factor, effective size),
            "propensities" (they fit worse than others of the search), or nothing.
    """

    number: int
    settings: Mapping[str, object]
    record: TrialRecord
    value: float
    doubt: str = ""


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    Args:
        importance: How much each setting mattered, as shares; empty if there are few sound trials.
    """

    recipe: Recipe
    trials: tuple[Trial, ...]
    importance: Mapping[str, float]

    def to_json(self) -> dict[str, object]:
        """As a document; a value that is not finite is null."""
        trials = [
            {
                "number": trial.number,
                "settings": dict(trial.settings),
                **asdict(trial.record),
                "value": None if trial.doubt else trial.value,
                "doubt": trial.doubt,
            }
            for trial in self.trials
        ]
        best = self.recipe.to_document()
        return {"best": best, "trials": trials, "importance": dict(self.importance)}


def tune(
    data: Trajectories,
    out: Path,
    search: Search,
    *,
    jobs: int = 1,
    cluster: str | None = None,
    report: Progress | None = None,
) -> Tuned:
    """Search; interrupted, or asked for more trials, the same call goes on where it stopped.

    Args:
        data: Logged stays. The search holds parts of them out by itself; keep back others to
            evaluate the policy on, since the best of many trials looks better than it is.
        out: Folder of the search; gets a copy of the stays, every trial, and `best.toml`.
        search: What to search.
        jobs: Trials at a time, each in a process of its own.
        cluster: Address of a Ray cluster to try them on.
        report: Told how far it is.
    """
    _require_room(out)
    data = complete_losses(data)
    identity = _identity(data, search)
    out.mkdir(mode=0o700, exist_ok=True)
    proposed = open_proposals(
        out / STORAGE,
        search.space,
        method=search.method,
        identity=identity,
        seed=search.seed,
        bundle=search.bundle,
    )
    with Lock(out), proposed as proposals:
        place = out / TRIALS
        place.mkdir(mode=0o700, exist_ok=True)
        if not (place / DATA).exists():
            data.save(place / DATA)

        def run(tasks: Sequence[Task]) -> dict[str, Json]:
            clock = Clock(search.n_trials / search.bundle, report)
            return run_tasks(tasks, place, jobs=jobs, cluster=cluster, inputs=[DATA], clock=clock)

        tuned = _rank(_try_all(proposals, search, identity, run), search)
        write_file(out / ALL, canonical(tuned.to_json()))
        write_file(out / BEST, format_toml(tuned.recipe.to_document()).encode())
    return tuned


def _try_all(
    proposals: Proposals,
    search: Search,
    identity: str,
    run: Callable[[Sequence[Task]], dict[str, Json]],
) -> list[Trial]:
    """Propose and try, batch by batch; `run` does all tasks so far."""
    settings: list[Mapping[str, object]] = []
    trials: list[Trial] = []
    for end in range(search.batch, search.n_trials + search.batch, search.batch):
        # All of a batch, even if fewer are wanted, lest more trials change it.
        settings += [proposals.settings(number) for number in range(end - search.batch, end)]
        wanted = settings[: search.n_trials]
        tasks = _tasks(wanted, search, identity)
        findings = run(tasks)
        records = [record for task in tasks for record in read_trials(findings[task.name])]
        trials = _compare(wanted, records)
        if len(wanted) == len(settings):  # a batch in part is told when it is whole
            proposals.tell({trial.number: trial.value for trial in trials})
    return trials


def _tasks(settings: Sequence[Mapping[str, object]], search: Search, identity: str) -> list[Task]:
    """One a bundle of trials, named after its first."""
    return [
        Task(
            f"trial-{start:04}",
            TrialsTask(
                search=identity,
                method=search.method,
                settings=tuple(settings[start : start + search.bundle]),
                seed=search.seed,
                device=search.device,
            ),
            device=search.device,
        )
        for start in range(0, len(settings), search.bundle)
    ]


def _compare(
    settings: Sequence[Mapping[str, object]], records: Sequence[TrialRecord]
) -> list[Trial]:
    """Trials with their value, in their order.

    As in the default selection, n trials are compared by risk plus sqrt(2 log n) standard errors:
    about how far the luckiest of n equals lies below its truth.
    """
    reach = math.sqrt(2 * math.log(max(len(settings), 2)))
    fits = [record.log_loss for record in records if record.log_loss is not None]
    limit = FIT_FACTOR * min(fits) + FIT_SLACK if fits else math.inf
    trials = []
    for number, (tried, record) in enumerate(zip(settings, records, strict=True)):
        doubt = "" if record.sound else "weights"
        if record.log_loss is not None and record.log_loss > limit:
            doubt = "propensities"
        value = math.inf
        if not doubt and record.risk is not None and record.std_error is not None:
            value = record.risk + reach * record.std_error
        trials.append(Trial(number, tried, record, value, doubt))
    return trials


def _rank(trials: Sequence[Trial], search: Search) -> Tuned:
    """The best trial first; refused if none can be believed."""
    ranked = sorted(trials, key=lambda trial: (trial.value, trial.number))
    sound = [trial for trial in ranked if not trial.doubt]
    if not sound:
        raise SettingError(
            "trials",
            f"none of {len(trials)} can be believed: {_doubts(trials)}",
            fix="Try more trials, another space, or another method.",
        )
    return Tuned(
        Recipe(search.method, sound[0].settings, search.seed),
        tuple(ranked),
        importance([(trial.settings, trial.value) for trial in sound], search.space),
    )


def _doubts(trials: Sequence[Trial]) -> str:
    """How many trials fail for what. They are trials and not people, so any number is shown."""
    counts = Counter(trial.doubt for trial in trials)
    why = {
        "weights": "by their matching factor or effective size",
        "propensities": "by propensities that fit worse than others",
    }
    return ", ".join(f"{counts[doubt]} {text}" for doubt, text in why.items() if counts[doubt])


def _identity(data: Trajectories, search: Search) -> str:
    return fingerprint(
        data=data,
        method=search.method,
        space=search.space,
        batch=search.batch,
        bundle=search.bundle,
        device=search.device,
        seed=search.seed,
    )


def _require_room(out: Path) -> None:
    """Refuse a place that holds something else."""
    if not out.parent.is_dir():
        raise FileError(str(out.parent), "must be a folder that exists")
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise FileError(str(out), "must be a folder")
    known = {STORAGE, LOCK_NAME}
    if out.is_dir() and any(out.iterdir()) and not known & {path.name for path in out.iterdir()}:
        raise FileError(str(out), "holds something else than a search", fix="Choose another.")
