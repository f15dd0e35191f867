"""Learners and simple policies: `fit`, `predict_proba`, `predict` on Trajectories or arrays.

What needs torch is imported on first use, so that simple policies come without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from etips.learn.learners.baselines import BestPossible as BestPossible
from etips.learn.learners.baselines import LoggingPolicy as LoggingPolicy
from etips.learn.learners.baselines import MostFrequent as MostFrequent
from etips.learn.learners.baselines import RandomPolicy as RandomPolicy

if TYPE_CHECKING:
    from etips.learn.learners.catalogue import *  # noqa: F403  # the learners
    from etips.learn.learners.foundation import Training as Training
    from etips.learn.nuisance.propensity import KnownPropensity as KnownPropensity
    from etips.learn.nuisance.propensity import SklearnModel as SklearnModel
    from etips.learn.training.settings import Settings as Settings

_LATER = {
    "KnownPropensity": "nuisance.propensity",
    "Settings": "training.settings",
    "SklearnModel": "nuisance.propensity",
    "Training": "learners.foundation",
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
