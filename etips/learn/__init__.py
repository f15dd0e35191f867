"""Learners and simple policies: `fit`, `predict_proba`, `predict` on Trajectories or arrays.

What needs torch is imported on first use, so that simple policies come without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from etips.learn.simple import BestPossible, LoggingPolicy, MostFrequent, RandomPolicy

if TYPE_CHECKING:
    from etips.learn.direct import DirectMethod
    from etips.learn.etips import EIPS, IPS, TIPS, EtIPS
    from etips.learn.foundation import Training
    from etips.learn.predictive import PredictiveModel
    from etips.learn.propensity import KnownPropensity, SklearnModel
    from etips.learn.robust import DoublyRobust
    from etips.learn.settings import Settings

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
    "EIPS": "etips",
    "IPS": "etips",
    "TIPS": "etips",
    "DirectMethod": "direct",
    "DoublyRobust": "robust",
    "EtIPS": "etips",
    "KnownPropensity": "propensity",
    "PredictiveModel": "predictive",
    "Settings": "settings",
    "SklearnModel": "propensity",
    "Training": "foundation",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
