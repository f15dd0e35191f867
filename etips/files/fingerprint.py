"""A name for a piece of work: the same settings and data give the same one, any other another."""

import functools
import hashlib
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from etips.errors import SettingError

Update = Callable[[bytes | memoryview], None]
"""Takes the next bytes of what is being named."""


def fingerprint(**parts: object) -> str:
    """SHA-256 over the contents of `parts`, the same in every process and on every machine.

    Objects count by class and public attributes, torch modules by layers and weights, functions by
    name and code; what a function has captured does not count. Attributes that begin or end with an
    underscore are private or learned, and do not count either.
    """
    digest = hashlib.sha256()
    _feed(digest.update, parts)
    return digest.hexdigest()


def _feed(update: Update, value: object) -> None:
    if value is None or isinstance(value, bool | int | float | str | bytes):
        plain = value.item() if isinstance(value, np.generic) else value  # np.float64 is a float
        _token(update, type(plain).__name__, repr(plain))
    elif isinstance(value, np.generic):
        _feed(update, value.item())
    elif isinstance(value, np.ndarray):
        _feed_array(update, value)
    elif isinstance(value, Tensor):
        _token(update, "tensor", str(value.dtype), str(tuple(value.shape)))
        update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().data)
    elif isinstance(value, Mapping):
        _feed_items(update, {str(key): item for key, item in value.items()})
    elif isinstance(value, list | tuple):
        _feed_list(update, value)
    elif isinstance(value, set | frozenset):
        _feed_list(update, ("set", *sorted(value, key=repr)))
    else:
        _feed_object(update, value)


def _feed_object(update: Update, value: object) -> None:
    if isinstance(value, type):
        _token(update, "class", _name(value))
    elif isinstance(value, Enum):
        _token(update, "member", _name(type(value)), value.name)
    elif isinstance(value, functools.partial):
        _feed_list(update, ("partial", value.func, value.args, value.keywords))
    elif isinstance(value, types.MethodType):
        _feed_list(update, ("method", value.__func__, value.__self__))
    elif isinstance(value, types.FunctionType):
        code = value.__code__
        plain = [const for const in code.co_consts if not isinstance(const, types.CodeType)]
        _token(update, "function", _name(value), code.co_code.hex())
        _feed_list(update, (code.co_names, plain))
    elif isinstance(value, types.BuiltinFunctionType | np.ufunc):
        _token(update, "built-in", value.__name__)
    elif isinstance(value, nn.Module):
        _token(update, "module", _name(type(value)), repr(value))
        _feed_items(update, value.state_dict())
    elif is_dataclass(value):
        _token(update, "object", _name(type(value)))
        _feed_items(update, {field.name: getattr(value, field.name) for field in fields(value)})
    elif hasattr(value, "__dict__"):
        _token(update, "object", _name(type(value)))
        public = {k: v for k, v in vars(value).items() if k.strip("_") == k}
        _feed_items(update, public)
    elif " at 0x" not in repr(value):
        _token(update, "object", _name(type(value)), repr(value))
    else:
        rule = "cannot be told from another of its kind, so that a run with it cannot be resumed"
        raise SettingError(type(value).__name__, rule, fix="Fit without a run folder.")


def _feed_array(update: Update, values: np.ndarray[Any, Any]) -> None:
    if values.dtype.hasobject:  # its bytes are addresses
        _token(update, "objects", str(values.shape))
        _feed_list(update, values.ravel().tolist())
        return
    _token(update, "array", values.dtype.str, str(values.shape))
    plain = np.ascontiguousarray(values)  # hashed where it lies: a copy takes as long as the hash
    update(plain.reshape(-1).view(np.uint8).data if plain.size else b"")


def _feed_items(update: Update, items: Mapping[str, object]) -> None:
    _token(update, "items", str(len(items)))
    for name in sorted(items):
        _token(update, name)
        _feed(update, items[name])


def _feed_list(update: Update, values: Iterable[object]) -> None:
    """A list counts like a tuple of the same: which of them a caller took changes nothing."""
    values = tuple(values)
    _token(update, "list", str(len(values)))
    for value in values:
        _feed(update, value)


def _token(update: Update, *texts: str) -> None:
    """Each text with its length, so that no two series of texts read alike."""
    for text in texts:
        encoded = text.encode(errors="surrogatepass")
        update(len(encoded).to_bytes(8, "little") + encoded)


def _name(thing: object) -> str:
    named = cast(type, thing)
    return f"{named.__module__}.{named.__qualname__}"
