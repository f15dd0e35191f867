"""Names of a package that are imported on first use: what needs torch or pyarrow takes a second."""

from collections.abc import Mapping
from importlib import import_module

_CATALOGUE = "etips.learn.learners.catalogue"


def load_lazily(package: str, name: str, homes: Mapping[str, str]) -> object:
    """What a package calls so: one of its late names, or a learner of the catalogue.

    Args:
        package: Whose name it is.
        name: The name.
        homes: Module of each late name.
    """
    value = None
    if name in homes:
        value = getattr(import_module(homes[name]), name)
    elif name[0].isupper():  # the name of a learner, if of anything
        value = import_module(_CATALOGUE).find_learner(name)
    if value is None:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return value
