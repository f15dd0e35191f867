"""Learners by name, with their settings as plain values: what a command or a study writes down.

Settings have flat keys. `encoder` (see `etips.models.encoders.registry`) and its sizes, such as
`hidden` and `embed`, shape the networks; `n_folds`,
`earlier_actions` and `calibrate` say how they are trained, as do the fields of
`etips.learn.Settings`: `epochs=20` for all three stages, `policy.epochs=20` for one of them
(propensity, outcome, policy). The others are a learner's own: `translations`, `support`, `kl`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from types import NoneType
from typing import Any, Literal, Self, get_args, get_origin, get_type_hints

from etips.errors import Faults, SettingError
from etips.files.toml import parse_toml
from etips.learn.fitting.stages import ENCODER, STAGES, Training
from etips.learn.learners.catalogue import DEFAULT, Method, require_method
from etips.learn.learners.learner import Learner
from etips.learn.training.settings import Settings
from etips.models.encoders.encoder import Encoder
from etips.models.encoders.registry import ENCODERS, all_sizes, make_encoder

_WORDS = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "a text",
    list: "a list of numbers",
    tuple: "a list of names",
}


@dataclass(frozen=True)
class SettingKind:
    """What a setting takes.

    Args:
        kind: int, float, bool, str, list for a list of numbers, or tuple for one of names.
        choices: The texts that it can be; any, if there are none.
    """

    kind: type
    choices: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The kind, as a refusal names it."""
        return _WORDS[self.kind]

    def admits(self, value: object) -> bool:
        """Whether a value is of the kind; a text may still be none of the choices."""
        return _is(self.kind, value)


def kinds_of(settings: type) -> dict[str, SettingKind]:
    """The plain settings among the fields of a dataclass, by name; `seed` is apart from them."""
    hints = get_type_hints(settings)
    kinds = {own.name: _kind(hints[own.name]) for own in fields(settings) if own.name != "seed"}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def flatten_tables(settings: Mapping[str, object]) -> dict[str, object]:
    """Keys as the command line has them: `epochs` in the table `policy` is `policy.epochs`."""
    flat: dict[str, object] = {}
    for key, value in settings.items():
        inner = value.items() if isinstance(value, Mapping) else [("", value)]
        flat |= {f"{key}.{name}" if name else key: entry for name, entry in inner}
    return flat


def _kind(annotation: Any) -> SettingKind | None:  # noqa: ANN401  # any annotation
    options = [option for option in get_args(annotation) if option is not NoneType]
    if get_origin(annotation) is Literal:
        return SettingKind(str, tuple(options))
    if get_origin(annotation) is Sequence:
        if str in (*options, *(own for option in options for own in get_args(option))):
            return SettingKind(tuple)
        return SettingKind(list) if options == [float] else None
    if len(options) == 1:  # or nothing
        return _kind(options[0])
    return SettingKind(annotation) if annotation in (int, float, bool, str) else None


def _is(kind: type, value: object) -> bool:
    """Whether a value is of a kind: a whole number is a number too, true is neither."""
    if kind is tuple:
        return isinstance(value, list | tuple) and all(isinstance(own, str) for own in value)
    if kind is list:
        return isinstance(value, list | tuple) and all(_is(float, entry) for entry in value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float) if kind is float else isinstance(value, kind)


_SHAPE: Mapping[str, SettingKind] = {
    "encoder": SettingKind(str, tuple(ENCODERS)),
    **dict.fromkeys(all_sizes(), SettingKind(int)),
}
_TRAINING: Mapping[str, SettingKind] = {
    name: kind for name, kind in kinds_of(Training).items() if name != "device"
}
_STAGE: Mapping[str, SettingKind] = kinds_of(Settings)


@dataclass(frozen=True)
class Recipe:
    """A method and how it is set: all that decides a policy, given the data and the machine.

    Args:
        method: A name of the catalogue.
        settings: Values by key; what is left out has its default.
        seed: Of everything.
    """

    method: str = DEFAULT
    settings: Mapping[str, object] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", dict(self.settings))
        check_settings(self.method, self.settings)
        if not SettingKind(int).admits(self.seed):
            raise SettingError("seed", "must be a whole number")

    def make(self, *, device: str = "auto") -> Learner:
        """The learner, not fitted yet."""
        return make_learner(self.method, self.settings, device=device, seed=self.seed)

    def to_document(self) -> dict[str, object]:
        """What TOML holds: method, seed, and the settings, those of one stage as its table."""
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
        """Read a document from TOML, or what somebody wrote; what is left out has its default."""
        return cls.from_document(parse_toml(text))

    @classmethod
    def from_document(cls, document: Mapping[str, object]) -> Self:
        """A recipe from a document's `method`, `seed` and `settings`; other keys are refused."""
        faults = Faults()
        for key in document:
            if key not in ("method", "seed", "settings"):
                faults.note(SettingError(key, "is not a key of a recipe"))
        method, settings = document.get("method", DEFAULT), document.get("settings", {})
        if not isinstance(method, str):
            faults.note(SettingError("method", "must be a text"))
        if not isinstance(settings, Mapping):
            faults.note(SettingError("settings", "must be a table"))
        made = cls()
        if isinstance(method, str) and isinstance(settings, Mapping):
            with faults.noting():
                made = cls(method, flatten_tables(settings), document.get("seed", 0))  # type: ignore[arg-type]
        faults.raise_any()
        return made


def make_learner(
    method: str, settings: Mapping[str, object], *, device: str = "auto", seed: int = 0
) -> Learner:
    """A learner with its settings, not fitted yet.

    Args:
        method: A name of the catalogue.
        settings: Values by key; see the module. Unknown keys and wrong kinds are refused.
        device: auto, cpu or cuda.
        seed: Of everything.
    """
    check_settings(method, settings)
    entry = require_method(method)
    own = {key: value for key, value in settings.items() if key in _own_kinds(entry)}
    own |= {key: tuple(value) for key, value in own.items() if isinstance(value, list)}
    parts: dict[str, object] = {"seed": seed}
    if "encoder" in entry.parameters and (entry.stages or _SHAPE.keys() & settings.keys()):
        parts["encoder"] = _encoder(settings)  # what trains nothing has none unless it is named
    if "training" in entry.parameters:
        parts["training"] = _training(settings, device)
    return entry.make(**{k: v for k, v in parts.items() if k in entry.parameters}, **own)


def check_settings(method: str, settings: Mapping[str, object]) -> None:
    """Refuse a method or a key that is not there, and a value of the wrong kind."""
    require_method(method)
    faults = Faults()
    for key, value in settings.items():
        with faults.noting():
            kind = kind_of(method, key)
            if not kind.admits(value):
                raise SettingError(key, f"must be {kind.words}")
            if kind.choices and value not in kind.choices:
                raise SettingError(key, f"must be {' or '.join(kind.choices)}")
    faults.raise_any()


def kind_of(method: str, key: str) -> SettingKind:
    """What a setting of a method takes; a key that the method does not have is refused."""
    known = setting_kinds(require_method(method))
    if not known:
        raise SettingError(key, f"is no setting: {method} has no settings")
    if key not in known:
        raise SettingError(key, f"is not a setting of {method}", fix=_advice(key, known))
    return known[key]


def _advice(key: str, known: Mapping[str, SettingKind]) -> str:
    """Which settings there are, those most like the one asked for first."""
    close = get_close_matches(key, known, n=3, cutoff=0.7)
    meant = f"Do you mean {' or '.join(close)}? " if close else ""
    plain = [name for name in known if "." not in name]
    staged = any("." in name for name in known)
    for_one = f", or for one stage, {STAGES[-1]}.{next(iter(_STAGE))}" if staged else ""
    return f"{meant}There are {', '.join(sorted(plain))}{for_one}."


def setting_kinds(method: Method) -> dict[str, SettingKind]:
    """Every setting of a method, by key."""
    kinds = _own_kinds(method)
    if "encoder" in method.parameters:
        kinds |= _SHAPE
    if "training" in method.parameters:
        stages = {f"{stage}.{name}": kind for stage in STAGES for name, kind in _STAGE.items()}
        kinds |= {**_TRAINING, **_STAGE, **stages}
    return kinds


def _own_kinds(method: Method) -> dict[str, SettingKind]:
    return kinds_of(method.learner)


def _encoder(settings: Mapping[str, object]) -> Encoder:
    sizes = {size: settings[size] for size in all_sizes() if size in settings}
    return make_encoder(str(settings.get("encoder", ENCODER.name)), sizes, usual=ENCODER)


def _training(settings: Mapping[str, object], device: str) -> Training:
    shared: Any = {key: settings[key] for key in _TRAINING if key in settings}
    everywhere: Any = {key: settings[key] for key in _STAGE if key in settings}
    made = replace(Training(device=device), **shared)
    stages = {}
    for stage in STAGES:
        own = {k.partition(".")[2]: v for k, v in settings.items() if _of(k, stage)}
        stages[stage] = replace(getattr(made, stage), **{**everywhere, **own})
    return replace(made, **stages)


def _of(key: str, stage: str) -> bool:
    return key.startswith(f"{stage}.")
