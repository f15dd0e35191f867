"""Learners and simple policies: `fit`, `predict_proba`, `predict` on Trajectories or arrays.

What needs torch is imported on first use, so that simple policies come without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from etips.learn.learners.baselines import BestPossible, LoggingPolicy, MostFrequent, RandomPolicy

if TYPE_CHECKING:
    from etips.learn.learners.direct import DirectMethod
    from etips.learn.learners.etips import EIPS, IPS, TIPS, EtIPS
    from etips.learn.learners.foundation import Training
    from etips.learn.learners.predictive import PredictiveModel
    from etips.learn.learners.robust import DoublyRobust
    from etips.learn.nuisance.propensity import KnownPropensity, SklearnModel
    from etips.learn.training.settings import Settings

__all__ = [
    "EIPS",
    "IPS",
    "TIPS",
    "BestPossible",
    "DirectMethod",
    "DoublyRobust",
    "EtIPS",
    "KnownPropensity",
    "LoggingPolicy",
    "MostFrequent",
    "PredictiveModel",
    "RandomPolicy",
    "Settings",
    "SklearnModel",
    "Training",
]

_HOMES = {
    "EIPS": "learners.etips",
    "IPS": "learners.etips",
    "TIPS": "learners.etips",
    "DirectMethod": "learners.direct",
    "DoublyRobust": "learners.robust",
    "EtIPS": "learners.etips",
    "KnownPropensity": "nuisance.propensity",
    "PredictiveModel": "learners.predictive",
    "Settings": "training.settings",
    "SklearnModel": "nuisance.propensity",
    "Training": "learners.foundation",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
