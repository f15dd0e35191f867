"""Learners by name, with their settings as plain values: what a command or a study writes down.

Settings have flat keys. `encoder` (see `etips.models.encoders.registry`) and its sizes, such as
`hidden` and `embed`, shape the networks; `n_folds`,
`earlier_actions` and `calibrate` say how they are trained, as do the fields of
`etips.learn.Settings`: `epochs=20` for all three stages, `policy.epochs=20` for one of them
(propensity, outcome, policy). The others are a learner's own: `translations`, `support`, `kl`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Self, get_args

from etips.errors import SettingError
from etips.files.toml import format_toml, parse_toml
from etips.learn.learners.baselines import MostFrequent, RandomPolicy
from etips.learn.learners.direct import DirectMethod
from etips.learn.learners.etips import EIPS, IPS, TIPS, EtIPS, Init
from etips.learn.learners.foundation import ENCODER, STAGES, Training
from etips.learn.learners.learner import Learner
from etips.learn.learners.predictive import PredictiveModel
from etips.learn.learners.robust import DoublyRobust
from etips.learn.learners.selection import Selection
from etips.learn.training.settings import Precision, Settings
from etips.models.encoders.encoder import Encoder
from etips.models.encoders.registry import ENCODERS, all_sizes, make_encoder

__all__ = ["METHODS", "Learner", "Method", "Recipe", "check_settings", "kind_of", "make_learner"]


class Method(StrEnum):
    """Names of the learners."""

    ETIPS = "etips"
    TIPS = "tips"
    EIPS = "eips"
    IPS = "ips"
    DIRECT = "direct"
    DOUBLY_ROBUST = "doubly-robust"
    PREDICTIVE = "predictive"
    RANDOM = "random"
    MOST_FREQUENT = "most-frequent"


METHODS = tuple(method.value for method in Method)
"""The same as plain texts."""


_NETWORKS: Mapping[str, tuple[type, Callable[..., Learner]]] = {
    "etips": (EtIPS, EtIPS),
    "tips": (EtIPS, TIPS),
    "eips": (EtIPS, EIPS),
    "ips": (EtIPS, IPS),
    "direct": (DirectMethod, DirectMethod),
    "doubly-robust": (DoublyRobust, DoublyRobust),
    "predictive": (PredictiveModel, PredictiveModel),
}
"""Class and maker of those that train networks."""

_SHAPE: Mapping[str, type] = {"encoder": str, **dict.fromkeys(all_sizes(), int)}
_TRAINING: Mapping[str, type] = {"n_folds": int, "earlier_actions": bool, "calibrate": bool}
_STAGE: Mapping[str, type] = {
    entry.name: type(entry.default) for entry in fields(Settings) if entry.name != "seed"
}
_OWN: Mapping[str, type] = {
    "translations": list,
    "support": float,
    "kl": float,
    "clip": float,
    "init": str,
    "selection": str,
    "interaction": bool,
}
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "encoder": tuple(ENCODERS),
    "init": get_args(Init),
    "precision": get_args(Precision),
    "selection": get_args(Selection),
}

_WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    list: "a list of numbers",
}


@dataclass(frozen=True)
class Recipe:
    """A method and how it is set: all that decides a policy, given the data and the machine.

    Args:
        method: One of `METHODS`.
        settings: Values by key; what is left out has its default.
        seed: Of everything.
    """

    method: str = "etips"
    settings: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", dict(self.settings))
        check_settings(self.method, self.settings)
        if not _is(int, self.seed):
            raise SettingError("seed", "must be a whole number")

    def make(self, *, device: str = "auto") -> Learner:
        """The learner, not fitted yet."""
        return make_learner(self.method, self.settings, device=device, seed=self.seed)

    def to_toml(self) -> str:
        """The recipe as text."""
        return format_toml(self.to_document())

    def to_document(self) -> dict[str, object]:
        """What the text holds: method, seed, and the settings, those of one stage as its table."""
        plain = {key: value for key, value in self.settings.items() if "." not in key}
        stages = {
            stage: {k.partition(".")[2]: v for k, v in self.settings.items() if _of(k, stage)}
            for stage in STAGES
        }
        settings = {**plain, **{stage: own for stage, own in stages.items() if own}}
        head = {"method": self.method, "seed": self.seed}
        return {**head, "settings": settings} if settings else head

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read what `to_toml` wrote, or somebody by hand; what is left out has its default."""
        return cls.from_document(parse_toml(text))

    @classmethod
    def from_document(cls, document: Mapping[str, object]) -> Self:
        """A recipe from a document's `method`, `seed` and `settings`; other keys are refused."""
        for key in document:
            if key not in ("method", "seed", "settings"):
                raise SettingError(key, "is not a key of a recipe")
        method, settings = document.get("method", "etips"), document.get("settings", {})
        if not isinstance(method, str):
            raise SettingError("method", "must be a text")
        if not isinstance(settings, Mapping):
            raise SettingError("settings", "must be a table")
        return cls(method, _flat(settings), document.get("seed", 0))  # type: ignore[arg-type]


def make_learner(
    method: str, settings: Mapping[str, object], *, device: str = "auto", seed: int = 0
) -> Learner:
    """A learner with its settings, not fitted yet.

    Args:
        method: One of `METHODS`.
        settings: Values by key; see the module. Unknown keys and wrong kinds are refused.
        device: auto, cpu or cuda.
        seed: Of everything.
    """
    check_settings(method, settings)
    if method == "random":
        return RandomPolicy(seed=seed)
    if method == "most-frequent":
        return MostFrequent()
    training = _training(settings, device)
    own = {key: value for key, value in settings.items() if key in _OWN}
    if "translations" in own:
        own["translations"] = tuple(settings["translations"])  # type: ignore[arg-type]
    maker = _NETWORKS[method][1]
    return maker(encoder=_encoder(settings), training=training, seed=seed, **own)


def check_settings(method: str, settings: Mapping[str, object]) -> None:
    """Refuse a method or a key that is not there, and a value of the wrong kind."""
    if method not in METHODS:
        raise SettingError("method", f"must be one of {', '.join(METHODS)}")
    for key, value in settings.items():
        kind = kind_of(method, key)
        if not _is(kind, value):
            raise SettingError(key, f"must be {_WORDS[kind]}")
        known = _CHOICES.get(key.rpartition(".")[2], ())
        if known and value not in known:
            raise SettingError(key, f"must be {' or '.join(known)}")


def kind_of(method: str, key: str) -> type:
    """What kind of value a setting has: int, float, bool, str or a list of numbers."""
    if method not in _NETWORKS:
        raise SettingError(key, f"is no setting: {method} has no settings")
    stage, _, name = key.rpartition(".")
    if name in _STAGE and stage in ("", *STAGES):
        return _STAGE[name]
    own = {entry.name for entry in fields(_NETWORKS[method][0])}
    known = {**_SHAPE, **_TRAINING, **{name: kind for name, kind in _OWN.items() if name in own}}
    if key not in known:
        raise SettingError(key, f"is not a setting of {method}")
    return known[key]


def _encoder(settings: Mapping[str, object]) -> Encoder:
    sizes = {size: settings[size] for size in all_sizes() if size in settings}
    return make_encoder(str(settings.get("encoder", ENCODER.name)), sizes, usual=ENCODER)


def _training(settings: Mapping[str, object], device: str) -> Training:
    shared: dict[str, Any] = {key: settings[key] for key in _TRAINING if key in settings}
    everywhere: dict[str, Any] = {key: settings[key] for key in _STAGE if key in settings}
    made = replace(Training(device=device), **shared)
    stages = {}
    for stage in STAGES:
        own = {k.partition(".")[2]: v for k, v in settings.items() if _of(k, stage)}
        stages[stage] = replace(getattr(made, stage), **{**everywhere, **own})
    return replace(made, **stages)


def _of(key: str, stage: str) -> bool:
    return key.startswith(f"{stage}.")


def _flat(settings: Mapping[str, object]) -> dict[str, object]:
    """Keys as they are on the command line; `[settings.policy]` holds those of a stage."""
    found: dict[str, object] = {}
    for key, value in settings.items():
        inner = value.items() if isinstance(value, Mapping) else [("", value)]
        found |= {f"{key}.{name}" if name else key: entry for name, entry in inner}
    return found


def _is(kind: type, value: object) -> bool:
    """Whether a value is of a kind: a whole number is a number too, true is neither."""
    if kind is list:
        return isinstance(value, list | tuple) and all(_is(float, entry) for entry in value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)
