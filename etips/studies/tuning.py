"""Search for the settings of a learner: held-out risk with the guard of the default selection.

Importing this needs optuna. Every proposed value is drawn anew from the search's seed, the number
of the trial and the name of the setting, given what earlier batches found. So a search that was
killed, at whatever moment, goes on as if it had not been.
"""

import hashlib
import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.trial import FrozenTrial, TrialState

from etips.data.trajectories import Trajectories
from etips.errors import FileError, SettingError
from etips.evaluation.censoring import complete_losses
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import canonical
from etips.files.lock import LOCK_NAME, Lock
from etips.files.toml import format_toml
from etips.files.writing import write_file
from etips.learn.learners.catalogue import DEFAULT, Choice, Range, Space
from etips.learn.learners.recipes import Recipe
from etips.progress import Progress
from etips.runs.tasks import Clock, Task, run_tasks
from etips.studies.space import check_space, first_trial, is_free, searched_part, usual_space
from etips.studies.trials import DATA, TrialRecord, TrialsTask

STORAGE, TRIALS, BEST, ALL = "search.db", "trials", "best.toml", "trials.json"
"""What a search's folder holds: Optuna's file, a folder a trial, the result, all trials."""

BATCH = 4
"""Trials proposed together. The result depends on it, so it does not follow the number of jobs."""

FIT_FACTOR, FIT_SLACK = 1.05, 0.01
"""How much worse than the best of the search a trial's propensities may fit held-out stays. Weights
made of propensities that do not fit can make any policy look good."""

LEAST_TRIALS = 8
"""Sound trials that it takes to say which settings matter."""

DOUBTS = {
    "weights": "by their matching factor or effective size",
    "propensities": "by propensities that fit worse than others",
}
"""Why the risk of a trial cannot be believed."""

_BEST_SHARE = 0.25  # of the trials, told from the rest
_DIGITS = 3  # of a proposed number: more would say nothing, and be harder to read


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

    def identity(self, data: Trajectories) -> str:
        """Fingerprint of all that decides what is found, but for the number of trials."""
        names = ("method", "space", "batch", "bundle", "device", "seed")
        return fingerprint(data=data, **{name: getattr(self, name) for name in names})


@dataclass(frozen=True)
class Trial:
    """Some settings, and what came of them.

    Args:
        number: From 0, in the order of the proposals.
        record: What held-out stays say of it.
        value: Risk plus some standard errors, by which trials are compared; infinite if in doubt.
        doubt: What its risk cannot be believed for: a key of `DOUBTS`, or nothing.
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
        trials: The best first.
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
        jobs: Trials at a time, each in a process of its own.
        cluster: Address of a Ray cluster to try them on.
        report: Is given how far it is.
    """
    _require_room(out)
    data = complete_losses(data)
    identity = search.identity(data)
    out.mkdir(mode=0o700, exist_ok=True)
    with Lock(out), _storage(out / STORAGE, identity) as study:
        place = out / TRIALS
        place.mkdir(mode=0o700, exist_ok=True)
        if not (place / DATA).exists():
            data.save(place / DATA)
        settings: list[dict[str, object]] = []
        trials: list[Trial] = []
        while len(settings) < search.n_trials:
            # All of a batch, even if fewer are wanted, lest more trials change it.
            settings += propose(search, settings, study.get_trials(deepcopy=False))
            wanted = settings[: search.n_trials]
            tasks = _tasks(wanted, search, identity)
            clock = Clock(search.n_trials / search.bundle, report)
            found: Any = run_tasks(
                tasks, place, jobs=jobs, cluster=cluster, inputs=[DATA], clock=clock
            )
            records = [TrialRecord(**own) for task in tasks for own in found[task.name]["trials"]]
            trials = compare(wanted, records)
            if len(wanted) == len(settings):  # a batch in part is kept when it is whole
                known = len(study.get_trials(deepcopy=False))
                study.add_trials([finished(trial, search.space) for trial in trials[known:]])
        tuned = _rank(trials, search)
        write_file(out / ALL, canonical(tuned.to_json()))
        write_file(out / BEST, format_toml(tuned.recipe.to_document()).encode())
    return tuned


def propose(
    search: Search, earlier: Sequence[Mapping[str, object]], done: Sequence[FrozenTrial]
) -> list[dict[str, object]]:
    """Settings of the next batch of trials.

    Args:
        earlier: Settings of all trials before.
        done: Trials whose value is known, in order; those of later batches are not looked at.
    """
    searched = searched_part(search.space)
    study = optuna.create_study()
    study.add_trials(done[: len(earlier)])
    asked = optuna.trial.create_trial(state=TrialState.RUNNING)
    batch: list[dict[str, object]] = []
    for number in range(len(earlier), len(earlier) + search.batch):
        given: dict[str, object] = {}  # what is not drawn
        if number == 0:
            given = first_trial(search.space, search.method)
        elif number % search.bundle:
            given = {k: v for k, v in batch[-(number % search.bundle)].items() if not is_free(k)}
        settings = {}
        for key, own in search.space.items():
            if isinstance(own, Choice) and key not in searched:
                settings[key] = own.values[0]
            elif key in given:
                settings[key] = _read(own, _stored(own, given[key]))
            else:
                text = f"{search.seed} {number} {key}"
                seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
                # One value at a time, from finished trials alone: no other draw may change it.
                sampler = optuna.samplers.TPESampler(
                    seed=seed, multivariate=False, constant_liar=False
                )
                settings[key] = _read(
                    own, sampler.sample_independent(study, asked, key, _distribution(own))
                )
        batch.append(settings)
    return batch


def compare(
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


def importance(trials: Sequence[Trial], space: Space) -> dict[str, float]:
    """How much each setting tells the best trials from the rest, as shares; empty if few trials."""
    if len(trials) < LEAST_TRIALS:
        return {}
    study = optuna.create_study()
    study.add_trials([finished(trial, space) for trial in trials])
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=_BEST_SHARE)
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))


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


def _rank(trials: Sequence[Trial], search: Search) -> Tuned:
    """The best trial first; refused if none can be believed."""
    ranked = sorted(trials, key=lambda trial: (trial.value, trial.number))
    sound = [trial for trial in ranked if not trial.doubt]
    if not sound:  # the counts are of trials and not of people, so any number is shown
        counts = Counter(trial.doubt for trial in trials)
        why = ", ".join(f"{counts[own]} {text}" for own, text in DOUBTS.items() if counts[own])
        rule = f"none of {len(trials)} can be believed: {why}"
        fix = "Try more trials, another space, or another method."
        raise SettingError("trials", rule, fix=fix)
    recipe = Recipe(search.method, sound[0].settings, search.seed)
    return Tuned(recipe, tuple(ranked), importance(sound, search.space))


@contextmanager
def _storage(path: Path, identity: str) -> Iterator[optuna.Study]:
    """Optuna's file, which keeps the finished trials, begun or taken up."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if not path.exists():
        write_file(path, b"")  # for its owner's eyes only; SQLite takes an empty file for a new one
    try:
        storage = optuna.storages.RDBStorage(
            "sqlite:///search.db",  # the file is named below, where no character means anything
            engine_kwargs={"creator": lambda: sqlite3.connect(path, timeout=60)},
        )
        try:
            if set(optuna.get_all_study_names(storage)) - {identity}:
                rule = "holds a search with other data, method, space, seed, batch or device"
                raise FileError(str(path.parent), rule, fix="Choose another folder.")
            yield optuna.create_study(storage=storage, study_name=identity, load_if_exists=True)
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except sqlalchemy.exc.DBAPIError as error:
        fix = "Remove it, and the search begins anew with what its trials have found."
        raise FileError(str(path), "cannot be used as a search's file", fix=fix) from error


def finished(trial: Trial, space: Space) -> FrozenTrial:
    """A trial as Optuna keeps it."""
    searched = searched_part(space)
    return optuna.trial.create_trial(
        params={key: _stored(own, trial.settings[key]) for key, own in searched.items()},
        distributions={key: _distribution(own) for key, own in searched.items()},
        value=trial.value,
    )


def _distribution(own: Choice | Range) -> optuna.distributions.BaseDistribution:
    if isinstance(own, Choice):  # as text: Optuna would not take lists
        return optuna.distributions.CategoricalDistribution([json.dumps(v) for v in own.values])
    if own.whole:
        return optuna.distributions.IntDistribution(int(own.low), int(own.high), log=own.log)
    return optuna.distributions.FloatDistribution(own.low, own.high, log=own.log)


def _stored(own: Choice | Range, value: object) -> object:
    return json.dumps(value) if isinstance(own, Choice) else value


def _read(own: Choice | Range, stored: Any) -> object:  # noqa: ANN401  # Optuna's value
    if isinstance(own, Choice):
        return json.loads(stored)
    if own.whole:
        return int(stored)
    return min(max(float(f"{stored:.{_DIGITS}g}"), own.low), own.high)


def _require_room(out: Path) -> None:
    """Refuse a place that holds something else."""
    if not out.parent.is_dir():
        raise FileError(str(out.parent), "must be a folder that exists")
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise FileError(str(out), "must be a folder")
    known = {STORAGE, LOCK_NAME}
    if out.is_dir() and any(out.iterdir()) and not known & {path.name for path in out.iterdir()}:
        raise FileError(str(out), "holds something else than a search", fix="Choose another.")
