"""Which settings to try next: Optuna's sampler over a file that outlives the process.

Importing this needs optuna. Every proposed value is drawn anew from the search's seed, the number
of the trial and the name of the setting, given what earlier batches found. So a search that was
killed, at whatever moment, goes on as if it had not been.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
from optuna.trial import FrozenTrial, TrialState

from etips.errors import FileError
from etips.files.writing import write_file
from etips.learn.learners.ranges import Choice, Range, Space
from etips.studies.space import first_trial, is_free, searched_part

LEAST_TRIALS = 8
"""Sound trials that it takes to say which settings matter."""

_BEST_SHARE = 0.25  # of the trials, told from the rest
_DIGITS = 3  # of a proposed number: more would say nothing, and be harder to read


@contextmanager
def open_proposals(
    path: Path, space: Space, *, method: str, identity: str, seed: int, bundle: int = 1
) -> Iterator["Proposals"]:
    """The proposals of a search, begun or taken up."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if not path.exists():
        write_file(path, b"")  # for its owner's eyes only; SQLite takes an empty file for a new one
    try:
        storage = optuna.storages.RDBStorage(
            "sqlite:///search.db",  # the file is named below, where no character means anything
            engine_kwargs={"creator": lambda: sqlite3.connect(path, timeout=60)},
        )
        try:
            names = set(optuna.get_all_study_names(storage))
            if names - {identity}:
                rule = "holds a search with other data, method, space, seed, batch or device"
                raise FileError(str(path.parent), rule, fix="Choose another folder.")
            study = optuna.create_study(
                storage=storage, study_name=identity, direction="minimize", load_if_exists=True
            )
            first = first_trial(space, method)
            yield Proposals(study, space, first=first, seed=seed, bundle=bundle)
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except sqlalchemy.exc.DBAPIError as error:
        fix = "Remove it, and the search begins anew with what its trials have found."
        raise FileError(str(path), "cannot be used as a search's file", fix=fix) from error


class Proposals:
    """Settings of the trials of a search, by number.

    Args:
        first: Settings of the first trial.
        bundle: As in `open_proposals`.
    """

    def __init__(
        self,
        study: optuna.Study,
        space: Space,
        *,
        first: Mapping[str, object],
        seed: int,
        bundle: int = 1,
    ) -> None:
        self._study, self._space, self._seed, self._bundle = study, space, seed, bundle
        self._searched = searched_part(space)
        if not study.get_trials(deepcopy=False):
            study.enqueue_trial({k: _stored(own, first[k]) for k, own in self._searched.items()})

    def settings(self, number: int) -> dict[str, object]:
        """Of one trial: those proposed earlier, or new ones. Numbers must come in order."""
        trial = self._trial(number)
        if trial is None and number % self._bundle:
            self._follow(number - number % self._bundle)
            trial = self._trial(number)
        if trial is None or trial.state is TrialState.WAITING:
            self._study.ask()
            trial = self._trial(number)
        assert trial is not None
        if trial.state is TrialState.RUNNING:
            self._complete(trial)
            trial = self._trial(number)
        assert trial is not None
        return {
            key: own.values[0]
            if isinstance(own, Choice) and len(own.values) == 1
            else _setting(own, trial.params[key])
            for key, own in self._space.items()
        }

    def tell(self, values: Mapping[int, float]) -> None:
        """What trials came to; those told before are left as they are."""
        for number, value in sorted(values.items()):
            trial = self._trial(number)
            assert trial is not None
            if trial.state is TrialState.RUNNING:
                self._study.tell(number, value)

    def _trial(self, number: int) -> FrozenTrial | None:
        trials = self._study.get_trials(deepcopy=False)
        return trials[number] if number < len(trials) else None

    def _follow(self, leader: int) -> None:
        """Give the next trial the shape of another one."""
        trial = self._trial(leader)
        assert trial is not None
        shape = {key: value for key, value in trial.params.items() if not is_free(key)}
        self._study.enqueue_trial(shape)

    def _complete(self, proposed: FrozenTrial) -> None:
        """Draw what has no value yet, each from a seed of its own."""
        trial = optuna.trial.Trial(self._study, proposed._trial_id)
        for key, own in self._searched.items():
            text = f"{self._seed} {proposed.number} {key}"
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
            # One value at a time, from finished trials alone: no other draw, and no trial that is
            # still running, may change it.
            self._study.sampler = optuna.samplers.TPESampler(
                seed=seed, multivariate=False, constant_liar=False
            )
            _suggest(trial, key, own)


def importance(
    trials: Sequence[tuple[Mapping[str, object], float]], space: Space
) -> dict[str, float]:
    """How much each setting tells the best trials from the rest, as shares; empty if few trials."""
    searched = searched_part(space)
    if len(trials) < LEAST_TRIALS:
        return {}
    study = optuna.create_study()
    kinds = {key: _distribution(own) for key, own in searched.items()}
    for settings, value in trials:
        params = {key: _stored(own, settings[key]) for key, own in searched.items()}
        made = optuna.trial.create_trial(params=params, distributions=kinds, value=value)
        study.add_trial(made)
    evaluator = optuna.importance.PedAnovaImportanceEvaluator(target_quantile=_BEST_SHARE)
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator))


def _suggest(trial: optuna.Trial, key: str, own: Choice | Range) -> None:
    """Give the trial a value of its own for one setting; one that it has stays."""
    if isinstance(own, Choice):
        trial.suggest_categorical(key, [json.dumps(value) for value in own.values])
    elif own.whole:
        trial.suggest_int(key, int(own.low), int(own.high), log=own.log)
    else:
        trial.suggest_float(key, own.low, own.high, log=own.log)


def _distribution(own: Choice | Range) -> optuna.distributions.BaseDistribution:
    if isinstance(own, Choice):
        return optuna.distributions.CategoricalDistribution([json.dumps(v) for v in own.values])
    if own.whole:
        return optuna.distributions.IntDistribution(int(own.low), int(own.high), log=own.log)
    return optuna.distributions.FloatDistribution(own.low, own.high, log=own.log)


def _stored(own: Choice | Range, value: object) -> object:
    """A setting as Optuna keeps it: lists would not do."""
    return json.dumps(value) if isinstance(own, Choice) else value


def _setting(own: Choice | Range, stored: Any) -> object:  # noqa: ANN401  # Optuna's value
    if isinstance(own, Choice):
        return json.loads(stored)
    if own.whole:
        return int(stored)
    return min(max(float(f"{stored:.{_DIGITS}g}"), own.low), own.high)
