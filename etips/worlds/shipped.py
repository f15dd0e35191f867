"""The data sets shipped with the package, checked against their SHA-256 before they are used."""

import hashlib
import io
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from etips.errors import FileError

_SHA256 = {
    "icu_sepsis.npz": "36498f924c693c6be7ae18f3ce9e1a8e48d41f80f2cc553b3993b1373c8a9109",
    "mnist.npz": "06af5dfe73b70e3bc1c36439982b18a8d76803db9b544f6fdf838a37fbb01b64",
}


def read_shipped(name: str, *arrays: str) -> tuple[NDArray[Any], ...]:
    """Read `arrays` of the shipped archive `name`; the others are not unpacked."""
    content = _checked(name)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return tuple(archive[array] for array in arrays)


def _checked(name: str) -> bytes:
    try:
        content = files("etips.worlds").joinpath("assets", name).read_bytes()
    except OSError as error:
        rule = "is missing from the installed package"
        raise FileError(name, rule, fix="Reinstall etips.") from error
    if hashlib.sha256(content).hexdigest() != _SHA256[name]:
        raise FileError(name, "is not the file etips ships", fix="Reinstall etips.")
    return content
