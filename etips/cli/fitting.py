"""What `etips fit` does once its data are read: the half that needs torch."""

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from etips.choice_record import ChoiceRecord
from etips.data.splitting import held_out
from etips.data.tables.table_spec import TableSpec
from etips.data.trajectories import Trajectories
from etips.disclosure import FEW, are_few, part_told
from etips.errors import (
    EtipsError,
    Faults,
    SettingError,
    SeveralFaultsError,
    faults_of,
    refuse_file,
)
from etips.files.fingerprint import fingerprint
from etips.learn.learners.learner import Learner
from etips.learn.learners.recipes import Recipe, flatten_tables, kind_of
from etips.learn.training.epoch_report import EpochReport
from etips.notes import note
from etips.results.records import PathCandidate
from etips.results.summaries import summarize_path
from etips.runs.folder import RunConfig, RunFolder, read_config
from etips.runs.places import Device
from etips.runs.run import Run
from etips.studies.fit_work import FitClock, stage_works


@dataclass(frozen=True)
class Told:
    """How to learn, as the command line says: options go over the file `config`."""

    config: Path | None
    method: str | None
    settings: tuple[str, ...]
    columns: TableSpec
    device: Device | None
    seed: int | None
    hold_out: float | None = None


@dataclass(frozen=True)
class Fitted:
    """A learner with what it has learned from."""

    method: str
    learner: Learner
    stays: Trajectories

    def rows(self) -> list[Mapping[str, object]]:
        """What was learned, a row each."""
        return _rows(self.learner)


def fit_run(
    stays: Trajectories,
    out: Path,
    told: Told,
    *,
    overwrite: bool,
    report: Callable[[EpochReport, float], None],
) -> Fitted:
    """Learn a policy and write its run folder.

    Args:
        stays: What to learn from.
        out: Where the folder is to be.
        told: How to learn.
        overwrite: Replace an earlier run.
        report: Is called with how a training stands and the share of the whole that is done.
    """
    chosen = _choose(told)
    if chosen.hold_out is not None:
        stays = _without(stays, chosen.hold_out)
    try:
        learner = chosen.recipe.make(device=chosen.device.value)
    except (SettingError, SeveralFaultsError) as error:
        raise _placed(error, keys_of(told.settings), told.config) from error
    content = fingerprint(data=stays)
    identity = fingerprint(data=content, recipe=chosen.recipe, device=chosen.device.value)
    own = chosen.recipe
    works = stage_works(own.method, own.settings, stays.n_stays)
    clock = FitClock(works)
    with Run(out, identity) as run:
        learner.fit(stays, report=lambda at: report(*clock.read(at)), run=run)
        RunFolder(out).write(
            learner.policy_,
            path=learner.path_,
            choice=learner.choice_,
            config=chosen,
            data=content,
            overwrite=overwrite,
        )
        run.clear()
    return Fitted(chosen.recipe.method, learner, stays)


def _choose(told: Told) -> RunConfig:
    """What to do: the file, if there is one, and over it whatever the options say."""
    base = RunConfig(Recipe()) if told.config is None else read_config(told.config)
    name = base.recipe.method if told.method is None else told.method
    given = read_settings(name, told.settings)
    try:
        recipe = Recipe(name, {**base.recipe.settings, **given}, base.recipe.seed)
    except (SettingError, SeveralFaultsError) as error:
        raise _placed(error, set(given), told.config) from error
    return RunConfig(
        replace(recipe, seed=recipe.seed if told.seed is None else told.seed),
        told.columns.over(base.columns),
        base.device if told.device is None else told.device,
        base.hold_out if told.hold_out is None else told.hold_out,
    )


def _placed(error: EtipsError, given: set[str], config: Path | None) -> EtipsError:
    """The refusal of one setting or of several, each with the place that it came from."""
    named = {key.rpartition(".")[2] for key in given} | given
    faults, of_file = Faults(), []
    for own in faults_of(error):
        if not isinstance(own, SettingError):
            faults.note(own)
        elif own.name in named or config is None:
            faults.note(SettingError(f"--set {own.name}", own.rule, fix=own.fix))
        else:
            of_file.append(own)
    if of_file:
        faults.note(refuse_file(str(config), of_file))
    return faults.noted[0] if len(faults.noted) == 1 else SeveralFaultsError(faults.noted)


def _without(stays: Trajectories, share: float) -> Trajectories:
    """All but those kept apart, and a line that says how many there are."""
    apart = held_out(stays, share)
    n_apart = int(apart.sum())
    if not 0 < n_apart < stays.n_stays:
        raise SettingError("--hold-out", "must leave stays on both sides; there are too few")
    note(
        f"{part_told(n_apart, stays.n_stays, 'stays')} were kept apart (--hold-out {share:g}): "
        "`etips evaluate` of the same data judges the run on those"
    )
    return stays.subset(~apart)


def _rows(learner: Learner) -> list[Mapping[str, object]]:
    if learner.choice_ is not None:
        return _tried(learner.choice_)
    if learner.path_:
        risk = "held-out SNIPS" if learner.fit_.outcome is None else "held-out risk"
        return [
            {
                "candidate": c.called,
                risk: math.nan if c.risk is None else c.risk,
                "std error": math.nan if c.std_error is None else c.std_error,
                "matching factor": c.matching_factor,
                "effective size": FEW
                if are_few(c.effective_size or 0)
                else round(c.effective_size or 0),
                "chosen": "<-" if c.chosen else "",
                "after selection": _corrected(c),
            }
            for c in summarize_path(learner.path_)
        ]
    if learner.policy_.kind == "uniform":
        return [{"policy": "every action alike"}]
    if learner.policy_.kind == "constant":
        action = learner.policy_.constant or 0
        names = learner.policy_.schema.actions
        return [{"policy": f"always {names[action] if names else f'action {action}'}"}]
    quality = learner.quality_
    if quality is None:  # no folds of its own, so nothing is known of stays not learned from
        return [{"policy": f"of {type(learner).__name__}", "support": learner.support_ or 0.0}]
    return [
        {
            "propensity accuracy": quality.accuracy,
            "log-loss": quality.log_loss,
            "calibration error": quality.calibration_error,
            "support": learner.support_ or 0.0,
        }
    ]


def _tried(choice: ChoiceRecord) -> list[Mapping[str, object]]:
    """Models, policies and the clinicians as they were judged, then what was left out."""
    rows: list[Mapping[str, object]] = [
        {
            "candidate": own.label,
            "kind": own.tier,
            "against clinicians": own.gap,
            "low": own.interval[0],
            "high": own.interval[1],
            "matching factor": own.factor,
            "effective size": FEW if are_few(own.size or 0) else round(own.size or 0),
            "weight": own.weight,
            "lean": own.lean,
            "seconds": choice.seconds.get(own.name),
            "kept": own.kept,
        }
        for own in choice.tried
    ]
    empty = dict.fromkeys(rows[0])
    return rows + [
        {**empty, "candidate": name, "kind": "left out", "seconds": seconds, "kept": False}
        for name, seconds in choice.left_out.items()
    ]


def _corrected(candidate: PathCandidate) -> str:
    """The risk that choosing comes to, beside the one that the luckiest was chosen by."""
    if candidate.corrected is None or candidate.corrected_error is None:
        return ""
    return f"{candidate.corrected:.4f} +- {candidate.corrected_error:.4f}"


def read_settings(method: str, entries: Sequence[str]) -> dict[str, object]:
    """Settings of entries `key=value`, each of the kind that it has; refuses all faults at once.

    A value is TOML (`[0.3, 0.7]`, `"gru"`, `true`, `{epochs = 20}`) or plain (`0.3,0.7`, `gru`).
    """
    settings: dict[str, object] = {}
    faults = Faults()
    for entry in entries:
        with faults.noting():
            key, text = _split(entry)
            value = _toml(text)
            if isinstance(value, Mapping):
                inner = flatten_tables({key: value})
                settings |= {name: _of_kind(method, name, str(v), v) for name, v in inner.items()}
            else:
                settings[key] = _of_kind(method, key, text, value)
    faults.raise_any()
    return settings


def keys_of(entries: Sequence[str]) -> set[str]:
    """The keys that entries `key=value` set, those inside a table too."""
    keys: set[str] = set()
    for entry in entries:
        key, text = _split(entry)
        value = _toml(text)
        keys |= set(flatten_tables({key: value}) if isinstance(value, Mapping) else [key])
    return keys


def _split(entry: str) -> tuple[str, str]:
    """The key and the text of its value."""
    key, equals, value = entry.partition("=")
    if not equals or not key.strip():
        raise SettingError("--set", "takes key=value", fix="Such as --set hidden=96.")
    return ".".join(part.strip(" \"'") for part in key.split(".")), value.strip()


def _of_kind(method: str, key: str, text: str, value: object) -> object:
    """The value in the type that its setting has; `value` is `text` as TOML, None if it is not."""
    try:
        kind = kind_of(method, key)
    except SettingError as error:
        raise SettingError(f"--set {key}", error.rule, fix=error.fix) from error
    try:
        return _READERS[kind.kind](text, value)
    except (TypeError, ValueError):
        fix = f"It must be {kind.words}."
        raise SettingError(f"--set {key}", "has a value of the wrong kind", fix=fix) from None


def _toml(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError, ValueError, KeyError):
        return None


def _whole(text: str, value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(text)


def _number(text: str, value: object) -> float:
    if isinstance(value, bool):
        raise TypeError
    return float(value) if isinstance(value, int | float) else float(text)


def _flag(text: str, value: object) -> bool:
    words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if text.lower() not in words:
        raise ValueError
    return words[text.lower()]


def _text(text: str, value: object) -> str:
    return value if isinstance(value, str) else text


def _numbers(text: str, value: object) -> list[float]:
    if isinstance(value, list):
        return [_number(str(part), part) for part in value]
    if isinstance(value, str):
        text = value
    return [float(part) for part in text.strip("[]() ").split(",") if part.strip()]


def _names(text: str, value: object) -> list[str]:
    if isinstance(value, list):
        return [_text(str(part), part) for part in value]
    text = value if isinstance(value, str) else text
    return [part.strip(" \"'") for part in text.strip("[]() ").split(",") if part.strip()]


_READERS = {int: _whole, float: _number, bool: _flag, str: _text, list: _numbers, tuple: _names}
