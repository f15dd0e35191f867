"""Learners, and policies to compare them with: `fit`, `predict_proba`, `predict`.

What needs torch is imported on first use: it takes a second.
"""

from typing import TYPE_CHECKING

from etips.lazy_names import list_lazily, load_lazily

if TYPE_CHECKING:
    from etips.learn.fitting.stages import Training as Training
    from etips.learn.learners.baselines import BestPossible as BestPossible
    from etips.learn.learners.baselines import LoggingPolicy as LoggingPolicy
    from etips.learn.learners.catalogue import *  # noqa: F403  # the learners
    from etips.learn.nuisance.propensity import KnownPropensity as KnownPropensity
    from etips.learn.nuisance.propensity import SklearnModel as SklearnModel
    from etips.learn.training.settings import Settings as Settings

_LATER = {
    "BestPossible": "etips.learn.learners.baselines",
    "KnownPropensity": "etips.learn.nuisance.propensity",
    "LoggingPolicy": "etips.learn.learners.baselines",
    "Settings": "etips.learn.training.settings",
    "SklearnModel": "etips.learn.nuisance.propensity",
    "Training": "etips.learn.fitting.stages",
}


def __getattr__(name: str) -> object:
    return load_lazily(__name__, name, _LATER)


def __dir__() -> list[str]:
    return list_lazily(__name__, _LATER)
