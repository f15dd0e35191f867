"""Learners, and policies to compare them with: `fit`, `predict_proba`, `predict`.

What needs torch is imported on first use: it takes a second.
"""

from typing import TYPE_CHECKING

from etips.lazy_names import list_lazily, load_lazily

if TYPE_CHECKING:
    from etips.learn.fitting.stages import Training as Training
    from etips.learn.learners.catalogue import *  # noqa: F403  # the learners
    from etips.learn.learners.oracles import BestPossible as BestPossible
    from etips.learn.learners.oracles import LoggingPolicy as LoggingPolicy
    from etips.learn.nuisance.propensity_models import KnownPropensity as KnownPropensity
    from etips.learn.nuisance.propensity_models import SklearnModel as SklearnModel
    from etips.learn.training.settings import Settings as Settings

_LATER = {
    "BestPossible": "etips.learn.learners.oracles",
    "KnownPropensity": "etips.learn.nuisance.propensity_models",
    "LoggingPolicy": "etips.learn.learners.oracles",
    "Settings": "etips.learn.training.settings",
    "SklearnModel": "etips.learn.nuisance.propensity_models",
    "Training": "etips.learn.fitting.stages",
}


def __getattr__(name: str) -> object:
    return load_lazily(__name__, name, _LATER)


def __dir__() -> list[str]:
    return list_lazily(__name__, _LATER)
