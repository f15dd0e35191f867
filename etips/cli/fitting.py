"""What `etips fit` does once its data are read: the half that needs torch."""

import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter, ValidationError

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


def fit_run(
    stays: Trajectories,
    out: Path,
    told: Told,
    *,
    overwrite: bool,
    report: Callable[[EpochReport, float], None],
) -> tuple[str, Learner, Trajectories]:
    """Learn a policy and write its run folder; the method, the learner, what it learned from.

    `report` is called with how a training stands and the share of the whole that is done.
    """
    base = RunConfig(Recipe()) if told.config is None else read_config(told.config)
    method = base.recipe.method if told.method is None else told.method
    settings = read_settings(method, told.settings)
    seed = base.recipe.seed if told.seed is None else told.seed
    device = base.device if told.device is None else told.device
    hold_out = base.hold_out if told.hold_out is None else told.hold_out
    if hold_out is not None:
        stays = _without(stays, hold_out)
    try:
        recipe = Recipe(method, {**base.recipe.settings, **settings}, seed)
        learner = recipe.make(device=device.value)
    except (SettingError, SeveralFaultsError) as error:
        raise _placed(error, set(settings), told.config) from error
    content = fingerprint(data=stays)
    identity = fingerprint(data=content, recipe=recipe, device=device.value)
    clock = FitClock(stage_works(method, recipe.settings, stays.n_stays))
    with Run(out, identity) as run:
        learner.fit(stays, report=lambda at: report(*clock.read(at)), run=run)
        RunFolder(out).write(
            learner.policy_,
            path=learner.path_,
            choice=learner.choice_,
            config=RunConfig(recipe, told.columns.over(base.columns), device, hold_out),
            data=content,
            overwrite=overwrite,
        )
        run.clear()
    return method, learner, stays


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
    return faults.all()


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


def table_of(learner: Learner) -> list[Mapping[str, object]]:
    """What was learned, a row each."""
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
                "after selection": ""
                if c.corrected is None or c.corrected_error is None
                else f"{c.corrected:.4f} +- {c.corrected_error:.4f}",
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


def read_settings(method: str, entries: Sequence[str]) -> dict[str, object]:
    """Settings of entries `key=value`, each of the kind that it has; refuses all faults at once.

    A value is TOML (`[0.3, 0.7]`, `"gru"`, `true`, `{epochs = 20}`) or plain (`0.3,0.7`, `gru`).
    """
    settings: dict[str, object] = {}
    faults = Faults()
    for entry in entries:
        with faults.noting():
            for key, text, value in _split(entry):
                settings[key] = _of_kind(method, key, text, value)
    faults.raise_any()
    return settings


def _split(entry: str) -> list[tuple[str, str, object]]:
    """Keys of an entry, the text of each value, and the value as TOML, None if it is not."""
    key, equals, text = entry.partition("=")
    if not equals or not key.strip():
        raise SettingError("--set", "takes key=value", fix="Such as --set hidden=96.")
    key, text = ".".join(part.strip(" \"'") for part in key.split(".")), text.strip()
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError, ValueError, KeyError):
        value = None
    if not isinstance(value, Mapping):
        return [(key, text, value)]
    return [(name, str(own), own) for name, own in flatten_tables({key: value}).items()]


def _of_kind(method: str, key: str, text: str, value: object) -> object:
    try:
        kind = kind_of(method, key)
    except SettingError as error:
        raise SettingError(f"--set {key}", error.rule, fix=error.fix) from error
    plain = value if isinstance(value, str) else text
    given = plain if value is None or kind.kind is str else value
    if kind.kind in (list, tuple) and not isinstance(value, list):
        parts = plain.strip("[]() ").split(",")
        given = [part.strip(" \"'") for part in parts if part.strip()]
    try:
        return _READERS[kind.kind].validate_python(given)
    except ValidationError:
        fix = f"It must be {kind.words}."
        raise SettingError(f"--set {key}", "has a value of the wrong kind", fix=fix) from None


def _no_flag(value: object) -> object:
    """A number is not true or false, which pydantic takes for one and zero."""
    if isinstance(value, bool):
        raise ValueError("must be a number")  # noqa: TRY004  # pydantic's way to refuse
    return value


Number = Annotated[float, BeforeValidator(_no_flag)]
_READERS: Mapping[type, TypeAdapter[Any]] = {
    int: TypeAdapter(Annotated[int, BeforeValidator(_no_flag)]),
    float: TypeAdapter(Number),
    bool: TypeAdapter(bool),
    str: TypeAdapter(str),
    list: TypeAdapter(list[Number]),
    tuple: TypeAdapter(list[Annotated[str, BeforeValidator(str)]]),
}
