"""Learners by their name on the command line, and their settings as key=value."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from enum import StrEnum
from typing import Any, Protocol, Self

from etips.data import Trajectories
from etips.errors import SettingError
from etips.learn import (
    EIPS,
    IPS,
    TIPS,
    DirectMethod,
    DoublyRobust,
    EtIPS,
    PredictiveModel,
    Training,
)
from etips.learn.foundation import STAGES
from etips.learn.runs import Run
from etips.learn.training import Report, Settings
from etips.models.encoders import GRU, LSTM


class Learner(Protocol):
    """What a command needs of a learner."""

    def fit(
        self, data: Trajectories, *, report: Report | None = None, run: Run | None = None
    ) -> Self:
        """Learn."""


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


_MAKERS: Mapping[Method, Callable[..., Any]] = {
    Method.ETIPS: EtIPS,
    Method.TIPS: TIPS,
    Method.EIPS: EIPS,
    Method.IPS: IPS,
    Method.DIRECT: DirectMethod,
    Method.DOUBLY_ROBUST: DoublyRobust,
    Method.PREDICTIVE: PredictiveModel,
}

_STAGE_KEYS = {field.name for field in fields(Settings)} - {"seed"}
_OWN_KEYS: Mapping[str, Callable[[str], object]] = {
    "translations": lambda text: tuple(float(part) for part in text.split(",")),
    "support": float,
    "kl": float,
    "clip": float,
    "init": str,
    "selection": str,
    "interaction": lambda text: _boolean(text),
}
_CHOICES = {"init": ("propensity", "random"), "selection": ("held-out", "paper")}


def make_learner(method: Method, settings: Sequence[str], *, device: str, seed: int) -> Learner:
    """A learner with its settings.

    `epochs=20` sets all three stages, `policy.epochs=20` one of them (propensity, outcome, policy).

    Args:
        method: Which.
        settings: Entries `key=value`.
        device: auto, cpu or cuda.
        seed: Of everything.
    """
    given = dict(_pair(entry) for entry in settings)
    encoder = _encoder(given)
    training = Training(device=device)
    if "n_folds" in given:
        training = replace(training, n_folds=_read("n_folds", int, given.pop("n_folds")))
    if "earlier_actions" in given:
        flag = _read("earlier_actions", _boolean, given.pop("earlier_actions"))
        training = replace(training, earlier_actions=flag)
    training = _stages(training, given)
    own = {key: _own(key, given.pop(key)) for key in list(given) if key in _OWN_KEYS}
    if given:
        raise SettingError(f"--set {next(iter(given))}", f"is not a setting of {method.value}")
    try:
        made: Learner = _MAKERS[method](encoder=encoder, training=training, seed=seed, **own)
    except TypeError as error:
        raise SettingError(
            "--set", f"{', '.join(own)} do not all apply to {method.value}"
        ) from error
    return made


def _encoder(given: dict[str, str]) -> GRU | LSTM:
    hidden = _read("hidden", int, given.pop("hidden", "64"))
    name = given.pop("encoder", "gru")
    if name not in ("gru", "lstm") or hidden < 1:
        raise SettingError("--set encoder, hidden", "must be gru or lstm, and at least 1")
    return GRU(hidden) if name == "gru" else LSTM(hidden)


def _stages(training: Training, given: dict[str, str]) -> Training:
    for key in list(given):
        stage, dot, name = key.rpartition(".")
        stages = (stage,) if dot else STAGES
        if name not in _STAGE_KEYS or not set(stages) <= set(STAGES):
            continue
        kind = type(getattr(Settings(), name))
        value = _read(key, kind, given.pop(key))
        changed = {s: replace(getattr(training, s), **{name: value}) for s in stages}
        training = replace(training, **changed)
    return training


def _own(key: str, text: str) -> object:
    if key in _CHOICES and text not in _CHOICES[key]:
        raise SettingError(f"--set {key}", f"must be {' or '.join(_CHOICES[key])}")
    return _read(key, _OWN_KEYS[key], text)


def _pair(entry: str) -> tuple[str, str]:
    key, equals, value = entry.partition("=")
    if not equals or not key.strip():
        raise SettingError("--set", "takes key=value")
    return key.strip(), value.strip()


def _read(key: str, kind: Callable[[str], Any], text: str) -> Any:  # noqa: ANN401
    try:
        return kind(text)
    except ValueError as error:
        raise SettingError(f"--set {key}", "has a value of the wrong kind") from error


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"
