"""The chosen policy learns on: from all stays, also from those that its networks were judged by.

Of five folds a network learns from seven tenths of the stays, and it stops while its rate is high.
Once a policy is chosen nobody has to be judged any more, so its networks go on from where they were
best, with all stays, while the rate falls to zero. Why, and for how long, is in
docs/method/learning.md, "Finishing".
"""

import math
from dataclasses import replace
from statistics import fmean

import torch

from etips.learn.fitting.prepare import Folds, Prepared
from etips.learn.fitting.trainer import TrainingRequest
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle

TIMES = 1.5
"""As long as networks had learned at their best they go on, this many times."""

MOST = 8
"""Epochs of it, at most."""


def finish_of(request: TrainingRequest, networks: Bundle) -> TrainingRequest | None:
    """The training in which networks go on with all stays; None where nobody knows how they ended.

    Args:
        request: That they came from.
        networks: The chosen ones, as judged.
    """
    if not networks.trained:
        return None
    settings = replace(request.settings, epochs=finish_epochs(networks, request.settings))
    return replace(
        request,
        prepared=_with_all(request.prepared),
        bundle=networks,
        stage="finish",
        settings=settings,
    )


def finish_epochs(networks: Bundle, settings: Settings) -> int:
    """Epochs for which networks go on.

    Args:
        networks: With how their training ended.
        settings: That they were trained by.
    """
    best = [
        own.epochs - settings.patience if own.epochs < settings.epochs else own.epochs
        for own in networks.trained
    ]
    return max(min(math.ceil(TIMES * fmean(best)), MOST, settings.epochs), 1)


def _with_all(prepared: Prepared) -> Prepared:
    """The same stays, of which every network learns from all and stops by none."""
    folds = prepared.folds
    every, none = torch.ones_like(folds.weight), torch.zeros_like(folds.held_out)
    return replace(prepared, folds=Folds(folds.fold, every, none))
