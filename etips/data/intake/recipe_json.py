"""Dataclasses to JSON and back; a document that does not fit is refused, never a traceback."""

import math
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from etips.errors import SettingError

T = TypeVar("T")


def to_document(value: object) -> object:
    """A JSON-ready copy of a dataclass of plain values; NaN is written as null."""
    if is_dataclass(value) and not isinstance(value, type):
        return {own.name: to_document(getattr(value, own.name)) for own in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_document(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_document(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def from_document(kind: type[T], document: object, *, where: str) -> T:
    """Rebuild a dataclass; a field that a file of before lacks has its default.

    Args:
        kind: The dataclass.
        document: What `to_document` made of one.
        where: The place, for a refusal.
    """
    return cast(T, _value(kind, document, where))


def _value(kind: Any, document: object, where: str) -> object:  # noqa: ANN401  # a type hint
    if is_dataclass(kind):
        return _object(cast(type, kind), document, where)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if document is None and type(None) in args:
            return None
        return _value(next(arg for arg in args if arg is not type(None)), document, where)
    if origin is Literal:
        return _require(document, document in args, where)
    if origin is tuple:
        _require(document, isinstance(document, list), where)
        return tuple(_value(args[0], item, where) for item in cast(list[object], document))
    if origin is Mapping:
        _require(document, isinstance(document, dict), where)
        told = cast(dict[str, object], document)
        return {str(key): _value(args[1], item, where) for key, item in told.items()}
    return _plain(kind, document, where)


def _plain(kind: type, document: object, where: str) -> object:
    if kind is float:
        if document is None:
            return math.nan
        number = isinstance(document, int | float) and not isinstance(document, bool)
        return float(cast(float, _require(document, number, where)))
    sound = isinstance(document, kind) and (kind is bool or not isinstance(document, bool))
    return _require(document, sound, where)


def _object(kind: type[T], document: object, where: str) -> T:
    hints = get_type_hints(kind)
    _require(document, isinstance(document, dict), where)
    told = cast(dict[str, object], document)
    _require(document, set(told) <= set(hints), where)
    given = {name: _value(hints[name], item, f"{where}, {name}") for name, item in told.items()}
    try:
        return kind(**given)
    except TypeError:
        raise SettingError(where, "is not as it was saved") from None


def _require(document: object, sound: bool, where: str) -> object:
    if not sound:
        raise SettingError(where, "is not as it was saved")
    return document
