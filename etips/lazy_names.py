"""Names of a package that are imported on first use: what needs torch or pyarrow takes a second."""

import sys
from collections.abc import Mapping
from importlib import import_module
from types import FunctionType, ModuleType

_OURS = ("load_lazily", "list_lazily")
_CATALOGUE = "etips.learn.learners.catalogue"


def load_lazily(package: str, name: str, homes: Mapping[str, str]) -> object:
    """What a package calls so: one of its late names, or a learner of the catalogue.

    `homes` has the module of each late name. `from PACKAGE import *` asks for `__all__`, all names.
    """
    value: object = None
    if name == "__all__":
        value = _offered(package, homes)
    elif name in homes:
        value = getattr(import_module(homes[name]), name)
    elif name[0].isupper():  # the name of a learner, if of anything
        value = import_module(_CATALOGUE).find_learner(name)
    if value is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return value


def list_lazily(package: str, homes: Mapping[str, str]) -> list[str]:
    """What `dir` shows of a package: what it offers, its modules, and what Python asks for."""
    held = vars(sys.modules[package])
    modules = [name for name, value in held.items() if isinstance(value, ModuleType)]
    asked = [name for name in held if name.startswith("__") and name.endswith("__")]
    return sorted({*_offered(package, homes), *modules, *asked})


def _offered(package: str, homes: Mapping[str, str]) -> list[str]:
    """What a package holds already, its late names, and the learners."""
    held = [
        name
        for name, value in vars(sys.modules[package]).items()
        if isinstance(value, type | FunctionType) and name[0] != "_" and name not in _OURS
    ]
    learners = (method.python_name for method in import_module(_CATALOGUE).METHODS.values())
    return sorted({*held, *homes, *learners})
