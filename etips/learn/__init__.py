"""Learners, and policies to compare them with: `fit`, `predict_proba`, `predict`.

What needs torch is imported on first use: it takes a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from etips.learn.fitting.stages import Training as Training
    from etips.learn.learners.catalogue import *  # noqa: F403  # the learners
    from etips.learn.learners.oracles import BestPossible as BestPossible
    from etips.learn.learners.oracles import LoggingPolicy as LoggingPolicy
    from etips.learn.nuisance.propensity_models import KnownPropensity as KnownPropensity
    from etips.learn.nuisance.propensity_models import SklearnModel as SklearnModel
    from etips.learn.training.settings import Settings as Settings

_LATER = {
    "BestPossible": "learners.oracles",
    "KnownPropensity": "nuisance.propensity_models",
    "LoggingPolicy": "learners.oracles",
    "Settings": "training.settings",
    "SklearnModel": "nuisance.propensity_models",
    "Training": "fitting.stages",
}


def __getattr__(name: str) -> object:
    value = None
    if name in _LATER:
        value = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    elif name[0].isupper():
        value = import_module(f"{__name__}.learners.catalogue").find_learner(name)
    if value is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return value
