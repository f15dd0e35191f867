"""An experiment as one frozen record, read from TOML; the paper's experiments are shipped.

A document says what the data are and how the methods are set, once for each preset; `[quick]` says
what a short run changes. `read_experiment` picks a preset and leaves nothing open.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from typing import Any

from etips.errors import SettingError
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.files.toml import parse_toml
from etips.learn.learners.catalogue import METHODS
from etips.learn.learners.recipes import check_settings, flatten_tables, kind_of
from etips.worlds.world_registry import WORLDS

TABLES = ("table1", "table2")
"""Kinds of study: labels are known and one test part serves all folds, or each fold is held out."""

DATA_FOLDER = "data"
"""In place of a world: a folder that is named when the study is run."""

SUPERVISED, LOGGING = "full-supervision", "logging"
"""Rows of the table without a learner: a policy that learns from every label, and the log's own."""

EVALUATOR = "direct"
"""The method whose settings and networks policies are evaluated with."""

Settings = Mapping[str, object]

_KINDS: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(("title", "table", "world", "lead", "logging"), (str, "a text")),
    **dict.fromkeys(("n", "lag", "folds", "seed"), (int, "a whole number")),
    **dict.fromkeys(("methods", "turned", "whole_stay"), (list, "a list of texts")),
    **dict.fromkeys(
        ("settings", "method", "evaluation", "logging_policy", "presets", "quick"),
        (dict, "a table"),
    ),
    "clip": (float, "a number"),
}
_NEEDED = ("title", "table", "world", "n", "lag", "folds", "presets")
_HEAD = (
    *_NEEDED,
    *("seed", "methods", "whole_stay", "logging_policy", "settings", "method", "evaluation"),
    "quick",
)
_PRESET = ("lead", "logging", "turned", "clip", "methods", "settings", "method")
_QUICK = ("n", "folds", "whole_stay", "evaluation", "logging_policy", "settings", "method")


@dataclass(frozen=True)
class Experiment:
    """All that decides a study's figures, given its data and the machine.

    Args:
        world: Name of a world, or `DATA_FOLDER`.
        n: Stays (digits: samples) to simulate; 0 where the data are a folder.
        logging: Digits: actions "sampled" (the paper) or "argmax" (its published code).
        seed: Of data, folds and networks.
        preset: Which reading of the paper; `lead` is the sentence about it.
        methods: Settings of each method, by its name, in the order of the table.
        turned: Methods read the wrong way round, as the published code reads its direct method.
        clip: Floor of the estimated propensities that policies are evaluated with.
        evaluation: Settings of the networks that policies are evaluated with.
        logging_policy: Digits: fields of `StoppedLstm`.
        whole_stay: Methods whose policies are also evaluated as they decide throughout a stay.
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
        _require_one_of("table", self.table, TABLES)
        _require_one_of("world", self.world, [*WORLDS, DATA_FOLDER])
        _require_one_of("logging", self.logging, ("sampled", "argmax"))
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
        for method, settings in self.methods.items():
            if method != LOGGING:
                check_settings(recipe_of(method), settings)
        for method in self.turned:
            _require_one_of("turned", method, [m.name for m in METHODS.values() if m.predicts_loss])
        for method in self.whole_stay:
            _require_one_of("whole_stay", method, list(METHODS))
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
    """The experiment that a document describes; `changes` replace fields of it."""
    head = _checked("", document, _HEAD, needed=_NEEDED)
    presets = head["presets"]
    _require_one_of("preset", preset, list(presets))
    own = _checked(f"presets.{preset}", presets[preset], _PRESET, needed=("lead",))
    short = _checked("quick", head.get("quick", {}), _QUICK)
    if not quick:  # a mistake in the short run is refused in the long one too
        read_experiment(document, name=name, preset=preset, quick=True)
        short = {}
    judged = _checked("evaluation", head.get("evaluation", {}), ("clip", "settings"))
    merged = {"seed": 0, "logging": "sampled", **head, **own, **short}
    plain = ("title", "table", "world", "n", "lag", "folds", "seed", "logging", "lead")
    fields: Any = {  # checked by `_checked`, or by the experiment
        **{key: merged[key] for key in plain},
        **{key: tuple(merged.get(key, ())) for key in ("turned", "whole_stay")},
        "clip": own.get("clip", judged.get("clip", PROPENSITY_FLOOR)),
        "evaluation": flatten_tables(judged.get("settings", {}))
        | flatten_tables(short.get("evaluation", {})),
        "logging_policy": {**head.get("logging_policy", {}), **short.get("logging_policy", {})},
        "methods": _methods(
            merged.get("methods", []),
            {"": head, f"presets.{preset}": own, "quick": short},
            table=merged["table"],
        ),
        "name": name,
        "preset": preset,
        "quick": quick,
        **changes,
    }
    return Experiment(**fields)


def _checked(
    where: str,
    table: Any,  # noqa: ANN401  # what TOML holds
    known: Sequence[str],
    *,
    needed: Sequence[str] = (),
) -> Any:  # noqa: ANN401  # a table of values of the kinds above
    """A table of the document; refuses a key that is missing, unknown or of the wrong kind."""
    start = f"{where}." if where else ""
    if not isinstance(table, Mapping):
        raise SettingError(where, "must be a table")
    for key in needed:
        if key not in table:
            raise SettingError(f"{start}{key}", "is missing")
    for key, value in table.items():
        if key not in known:
            raise SettingError(f"{start}{key}", "is not a key of an experiment")
        kind, words = _KINDS[key]
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not (whole if kind is int else isinstance(value, kind) or (kind is float and whole)):
            raise SettingError(f"{start}{key}", f"must be {words}")
        if kind is list and (
            not all(isinstance(own, str) for own in value) or len(set(value)) < len(value)
        ):
            raise SettingError(f"{start}{key}", "must be a list of texts, none of them twice")
    return dict(table)


def _methods(
    names: Sequence[str], layers: Mapping[str, Settings], *, table: str
) -> dict[str, Settings]:
    """Settings of each method: common ones where they apply, its own, later layers above."""
    known = [*METHODS, SUPERVISED, LOGGING] if table == "table1" else [*METHODS]
    if not names:
        raise SettingError("methods", "must name at least one")
    for name in names:
        _require_one_of("methods", name, known)
    settings: dict[str, dict[str, object]] = {name: {} for name in names}
    for where, layer in layers.items():
        start = f"{where}." if where else ""
        tables: Any = layer
        common, own = flatten_tables(tables.get("settings", {})), tables.get("method", {})
        for key in common:
            if not any(_has_setting(name, key) for name in names):
                raise SettingError(f"{start}settings.{key}", "is a setting of no method here")
        for name, values in own.items():
            _require_one_of(f"{start}method", name, names)
            if not isinstance(values, Mapping):
                raise SettingError(f"{start}method.{name}", "must be a table")
        for name in names:
            settings[name] |= {k: value for k, value in common.items() if _has_setting(name, k)}
            settings[name] |= flatten_tables(own.get(name, {}))
    return dict(settings)


def _has_setting(method: str, key: str) -> bool:
    if method == LOGGING:
        return False
    try:
        kind_of(recipe_of(method), key)
    except SettingError:
        return False
    return True


def _require_one_of(where: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise SettingError(where, f"must be one of {', '.join(known)}")
