"""An experiment as one frozen description, read from TOML; the paper's experiments are shipped.

A document says what the data are and how the methods are set, once for each preset; `[quick]` says
what a short run changes. `read_experiment` picks a preset and leaves nothing open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any, TypeVar, cast

from etips.errors import SettingError
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.files.toml import parse_toml
from etips.learn.learners.catalogue import METHODS
from etips.learn.learners.recipes import check_settings, kind_of
from etips.learn.learners.setting_kinds import flatten_tables
from etips.worlds.world_registry import WORLDS

TABLES = ("table1", "table2")
"""Kinds of study: labels are known and one test part serves all folds, or each fold is held out."""

DATA_FOLDER = "data"
"""In place of a world: a folder that is named when the study is run."""

SUPERVISED, LOGGING = "full-supervision", "logging"
"""Rows of the table that are no learner's: told every label, and what was logged."""

EVALUATOR = "direct"
"""The method whose settings and networks policies are evaluated with."""

Settings = Mapping[str, object]
Kind = TypeVar("Kind")

_REQUIRED = object()
_WORDS = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    list: "a list of texts",
    dict: "a table",
}


@dataclass(frozen=True)
class Experiment:
    """All that decides a study's figures, given its data and the machine.

    Args:
        world: Name of a world, or `DATA_FOLDER`.
        n: Stays (digits: samples) to simulate; 0 where the data are a folder.
        logging: Digits: actions "sampled" (the paper) or "argmax" (its published code).
        seed: Of data, folds and networks.
        preset: Which reading of the paper.
        lead: What the preset stands for.
        methods: Settings of each method, by its name, in the order of the table.
        turned: Methods read the wrong way round, as the published code reads its direct method.
        clip: Floor of the estimated propensities that policies are evaluated with.
        evaluation: Settings of the networks that policies are evaluated with.
        logging_policy: Digits: fields of `StoppedLstm`.
        whole_stay: Methods whose policies are also looked at as they decide throughout a stay.
    """

    name: str
    title: str
    table: str
    world: str
    n: int
    lag: int
    logging: str
    folds: int
    seed: int
    preset: str
    quick: bool
    lead: str
    methods: Mapping[str, Settings]
    turned: tuple[str, ...] = ()
    clip: float = PROPENSITY_FLOOR
    evaluation: Settings = field(default_factory=dict)
    logging_policy: Settings = field(default_factory=dict)
    whole_stay: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _among("table", self.table, TABLES)
        _among("world", self.world, [*WORLDS, DATA_FOLDER])
        _among("logging", self.logging, ("sampled", "argmax"))
        labelled = [name for name, world in WORLDS.items() if world.has_labels]
        if self.table == "table1" and self.world not in labelled:
            raise SettingError("world", f"must be {' or '.join(labelled)}: table1 needs labels")
        if self.folds < 2:
            raise SettingError("folds", "must be at least 2")
        lags = (0, 1) if self.world == DATA_FOLDER else sorted(WORLDS[self.world].lags)
        if self.lag not in lags:
            raise SettingError("lag", f"must be {' or '.join(map(str, lags))} with {self.world}")
        if not 0 <= self.clip < 1:
            raise SettingError("evaluation.clip", "must be in [0, 1)")
        if self.seed < 0:
            raise SettingError("seed", "must not be negative")
        _check_methods(list(self.methods), self.table)
        for method, settings in self.methods.items():
            if method != LOGGING:
                check_settings(recipe_of(method), settings)
        for method in self.turned:
            _among("turned", method, [m.name for m in METHODS.values() if m.predicts_loss])
        for method in self.whole_stay:
            _among("whole_stay", method, list(METHODS))
        check_settings(EVALUATOR, self.evaluation)

    def to_json(self) -> dict[str, object]:
        """A JSON-ready copy."""
        return {**asdict(self), "methods": {k: dict(v) for k, v in self.methods.items()}}


def recipe_of(method: str) -> str:
    """The learner behind a row: full supervision imitates labels as others imitate clinicians."""
    return "predictive" if method == SUPERVISED else method


def shipped(name: str) -> dict[str, object]:
    """A document that comes with the package; see `shipped_names`."""
    place = files("etips.studies").joinpath("configs", f"{name}.toml")
    if not place.is_file():
        raise SettingError("experiment", f"must be one of {', '.join(shipped_names())}")
    return parse_toml(place.read_text(encoding="utf-8"))


def shipped_names() -> list[str]:
    """What `shipped` knows."""
    entries = files("etips.studies").joinpath("configs").iterdir()
    return sorted(entry.name[:-5] for entry in entries if entry.name.endswith(".toml"))


def read_experiment(
    document: Mapping[str, object],
    *,
    name: str,
    preset: str = "etips",
    quick: bool = False,
    **changes: object,
) -> Experiment:
    """The experiment that a document describes."""
    head = _Reader(document, "")
    presets, short = head.take("presets", dict), head.take("quick", dict, {})
    _among("preset", preset, list(presets))
    own = _Reader(cast(Mapping[str, object], presets[preset]), f"presets.{preset}")
    brief = _Reader(short if quick else {}, "quick")
    evaluation = _Reader(head.take("evaluation", dict, {}), "evaluation")
    fields = _fields(head, own, brief, evaluation)
    for reader in (head, own, brief, evaluation):
        reader.close()
    if not quick:  # a mistake in the short run is told to whoever runs the long one
        read_experiment(document, name=name, preset=preset, quick=True)
    known = {"name": name, "preset": preset, "quick": quick}
    told: Any = {**fields, **known, **changes}  # each checked by `_Reader`, or by the experiment
    return Experiment(**told)


def _fields(
    head: "_Reader", own: "_Reader", brief: "_Reader", evaluation: "_Reader"
) -> dict[str, object]:
    """What a document says: at its head, in the preset, for the short run, about evaluation."""
    table = head.take("table", str)
    names = _texts("methods", own.take("methods", list, head.take("methods", list, [])))
    _check_methods(names, table)
    return {
        "title": head.take("title", str),
        "table": table,
        "world": head.take("world", str),
        "n": brief.take("n", int, head.take("n", int)),
        "lag": head.take("lag", int),
        "folds": brief.take("folds", int, head.take("folds", int)),
        "seed": head.take("seed", int, 0),
        "logging": own.take("logging", str, "sampled"),
        "lead": own.take("lead", str),
        "turned": tuple(_texts("turned", own.take("turned", list, []))),
        "whole_stay": tuple(
            _texts("whole_stay", brief.take("whole_stay", list, head.take("whole_stay", list, [])))
        ),
        "clip": own.take("clip", float, evaluation.take("clip", float, PROPENSITY_FLOOR)),
        "evaluation": _flat(evaluation.take("settings", dict, {}))
        | _flat(brief.take("evaluation", dict, {})),
        "logging_policy": {
            **head.take("logging_policy", dict, {}),
            **brief.take("logging_policy", dict, {}),
        },
        "methods": _methods(names, [head, own, brief]),
    }


def _methods(names: Sequence[str], layers: Sequence["_Reader"]) -> dict[str, Settings]:
    """Settings of each method: common ones where they apply, its own, later layers above."""
    settings: dict[str, dict[str, object]] = {name: {} for name in names}
    for layer in layers:
        common = _flat(layer.take("settings", dict, {}))
        own = layer.take("method", dict, {})
        for key in common:
            if not any(_applies(name, key) for name in names):
                raise SettingError(layer.place(f"settings.{key}"), "is a setting of no method here")
        for name in own:
            _among(layer.place("method"), name, names)
        for name in names:
            settings[name] |= {key: value for key, value in common.items() if _applies(name, key)}
            settings[name] |= _flat(own.get(name, {}))
    return dict(settings)


def _applies(method: str, key: str) -> bool:
    if method == LOGGING:
        return False
    try:
        kind_of(recipe_of(method), key)
    except SettingError:
        return False
    return True


def _check_methods(names: Sequence[str], table: str) -> None:
    if not names:
        raise SettingError("methods", "must name at least one")
    known = [*METHODS, SUPERVISED, LOGGING] if table == "table1" else [*METHODS]
    for name in names:
        _among("methods", name, known)


class _Reader:
    """Takes the keys of a table one by one; refuses the missing, the wrong and the left over."""

    def __init__(self, table: Mapping[str, object], where: str) -> None:
        self._table = dict(table)
        self._where = where

    def place(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def take(self, key: str, kind: type[Kind], default: object = _REQUIRED) -> Kind:
        value = self._table.pop(key, default)
        if value is _REQUIRED:
            raise SettingError(self.place(key), "is missing")
        whole = isinstance(value, int) and not isinstance(value, bool)
        sound = whole if kind is int else isinstance(value, kind) or (kind is float and whole)
        if not sound:
            raise SettingError(self.place(key), f"must be {_WORDS[kind]}")
        return cast(Kind, value)

    def close(self) -> None:
        if self._table:
            raise SettingError(self.place(next(iter(self._table))), "is not a key of an experiment")


def _texts(where: str, values: Sequence[object]) -> list[str]:
    if not all(isinstance(value, str) for value in values) or len(set(values)) < len(values):
        raise SettingError(where, "must be a list of texts, none of them twice")
    return cast(list[str], list(values))


def _flat(settings: object) -> dict[str, object]:
    """Keys as recipes have them: what stands in the table `policy` is called `policy.epochs`."""
    if not isinstance(settings, Mapping):
        raise SettingError("settings", "must be a table")
    return flatten_tables(settings)


def _among(where: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise SettingError(where, f"must be one of {', '.join(known)}")
