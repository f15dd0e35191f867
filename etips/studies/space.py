"""What a search may vary: values or a range for each setting of a learner, read from TOML."""

import json
from collections.abc import Mapping

from etips.errors import SettingError
from etips.learn.fitting.stages import ENCODER, STAGES, Training
from etips.learn.learners.catalogue import Choice, Method, Range, Space, require_method
from etips.learn.learners.recipes import (
    SettingKind,
    check_settings,
    flatten_tables,
    kind_of,
    make_learner,
    setting_kinds,
)
from etips.models.encoders.registry import encoders_with

_USUAL: Space = {
    "hidden": Choice((32, 64, 96, 128)),
    "embed": Choice((0, 64, 128)),
    "encoder": Choice(encoders_with("hidden", "embed")),
    "learning_rate": Range(1e-5, 1e-1, log=True),
    "weight_decay": Range(1e-6, 1e-1, log=True),
    "batch_size": Choice((64, 128, 256, 512)),
    "dropout": Range(0.0, 0.5),
    "input_dropout": Range(0.0, 0.3),
}

PAPER = "paper"
"""The name of `paper_space`."""

_PAPER: Space = {
    "hidden": Choice(tuple(range(16, 129, 16))),
    "encoder": Choice(("lstm",)),
    "embed": Choice((0,)),
    "learning_rate": Range(1e-5, 1e-1, log=True),  # theirs goes down to 1e-10, too small to train
    "weight_decay": Range(1e-10, 1e-1, log=True),
    "batch_size": Choice((16, 32, 64, 128)),
}


def usual_space(method: str) -> Space:
    """What is searched unless a space is given.

    Depth is `embed`: the encoders have one recurrent layer, and may have another before it. An
    encoder without these two sizes is searched where a space names it.
    """
    entry = require_settings(method)
    return {**_of_networks(_USUAL, entry), **entry.space}


def paper_space(method: str) -> Space:
    """What the paper's published code searches, as far as our networks have it.

    They have no choice of activation. A trial trains every translation, so it needs no choice of
    one.
    """
    entry = require_settings(method)
    return {**_of_networks(_PAPER, entry), **entry.paper_space}


def _of_networks(space: Space, method: Method) -> Space:
    """The part of a space that the method has settings for; none where it trains no networks."""
    known = setting_kinds(method) if method.stages else {}
    return {key: own for key, own in space.items() if key in known}


def is_free(key: str) -> bool:
    """Whether a setting leaves the shape of the networks, and what they read at once, alone."""
    return key.rpartition(".")[2] in ("learning_rate", "weight_decay")


def require_settings(method: str) -> Method:
    """The method; one that is unknown, or that has nothing to search, is refused."""
    entry = require_method(method)
    if not setting_kinds(entry):
        raise SettingError("method", f"{method} has no settings to search")
    return entry


def read_space(document: Mapping[str, object], method: str) -> Space:
    """A space from what a TOML file holds: `key = value`, `[values]` or `{low, high, log}`.

    The settings of one stage stand in its table: `[policy]`, say.
    """
    require_settings(method)
    flat: dict[str, object] = {}
    for key, entry in document.items():
        stage = key in STAGES and isinstance(entry, Mapping)
        flat |= flatten_tables({key: entry}) if stage else {key: entry}
    return {key: _read(method, key, entry) for key, entry in flat.items()}


def searched_part(space: Space) -> Space:
    """What has more than one value to choose from."""
    return {k: own for k, own in space.items() if isinstance(own, Range) or len(own.values) > 1}


def check_space(method: str, space: Space) -> None:
    """Refuse what no learner could be made of, before any is trained."""
    if not searched_part(space):
        raise SettingError("space", "must leave something to search")
    ends = {key: _ends(own) for key, own in space.items()}
    for key, values in ends.items():
        for value in values:
            check_settings(method, {key: value})
            if key == "n_folds" and isinstance(value, int) and value < 2:
                raise SettingError(key, "must be at least 2: a search needs stays held out")
    low, high = ({key: values[at] for key, values in ends.items()} for at in (0, -1))
    for settings in (low, high):
        make_learner(method, settings, device="cpu")


def first_trial(space: Space, method: str) -> dict[str, object]:
    """The learner's own defaults, as near as the space has them: what a search has to beat."""
    own_fields = vars(require_method(method).make())
    usual = {name: list(v) if isinstance(v, tuple) else v for name, v in own_fields.items()}
    usual |= {**vars(Training().policy), **ENCODER.to_json(), "encoder": ENCODER.name}
    settings: dict[str, object] = {}
    for key, own in space.items():
        stage, _, name = key.rpartition(".")
        default = vars(getattr(Training(), stage)).get(name) if stage else usual.get(name)
        settings[key] = _nearest(own, default)
    return settings


def _nearest(own: Choice | Range, default: object) -> object:
    """The default, or else the nearest number; the first, or least, where there is no nearer."""
    number = default if isinstance(default, int | float) else None
    if isinstance(own, Range):
        inside = own.low if number is None else min(max(number, own.low), own.high)
        return int(inside) if own.whole else float(inside)
    numbers = [value for value in own.values if isinstance(value, int | float)]
    if default in own.values or number is None or not numbers:
        return default if default in own.values else own.values[0]
    return min(numbers, key=lambda value: abs(value - number))


def _ends(own: Choice | Range) -> tuple[object, ...]:
    if isinstance(own, Choice):
        return own.values
    return (int(own.low), int(own.high)) if own.whole else (own.low, own.high)


def _read(method: str, key: str, entry: object) -> Choice | Range:
    kind = kind_of(method, key).kind
    if isinstance(entry, Mapping):
        return _range(key, kind, entry)
    several = isinstance(entry, list)
    if isinstance(entry, list) and kind is list:  # grids of translations, or just one
        several = any(isinstance(value, list) for value in entry)
    values = tuple(entry) if several and isinstance(entry, list) else (entry,)
    for value in values:
        check_settings(method, {key: value})
    if not values or len({json.dumps(value) for value in values}) < len(values):
        raise SettingError(key, "must have values to choose from, each once")
    return Choice(values)


def _range(key: str, kind: type, entry: Mapping[str, object]) -> Range:
    if kind not in (int, float):
        raise SettingError(key, "takes values, not a range")
    if not {"low", "high"} <= set(entry) <= {"low", "high", "log"}:
        raise SettingError(key, "takes a range as {low = ..., high = ..., log = true or false}")
    low, high, log = entry["low"], entry["high"], entry.get("log", False)
    if not all(SettingKind(kind).admits(end) for end in (low, high)):
        raise SettingError(key, "must have ends of the kind that the setting has")
    assert isinstance(low, int | float)
    assert isinstance(high, int | float)
    if not isinstance(log, bool) or not (0 if log else -float("inf")) < low < high < float("inf"):
        raise SettingError(key, "must have ends in order, above 0 where log is true")
    return Range(low, high, log=log, whole=kind is int)
