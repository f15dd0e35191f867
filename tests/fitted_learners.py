"""Learners of the catalogue fitted once on a small ward, for the tests of what all keep to."""

import copy
from dataclasses import fields
from functools import cache

import numpy as np
import pytest
from small_worlds import LEARNERS, NETWORKS, training, ward

from etips.errors import EtipsError

every_learner = pytest.mark.parametrize("name", LEARNERS)
every_network = pytest.mark.parametrize("name", NETWORKS)
floored = pytest.mark.parametrize("name", [n for n in NETWORKS if n != "PredictiveModel"])


@cache
def log(lag=1):
    return ward(lag=lag)


@cache
def fitted(name, lag=1, **settings):
    """A learner that nobody changes, fitted once."""
    return LEARNERS[name](**settings).fit(log(lag))


def fitted_as_is(name, lag=1):
    """The same with networks as they were trained: shrunk, those of a log of noise say nothing."""
    more = {"training": training(calibrate=False)} if name in NETWORKS else {}
    return fitted(name, lag, **more)


def arrays():
    """A small trial: 60 rows, three arms, losses 0 and 1."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(60, 3))
    action = np.tile([0, 1, 2], 20)
    loss = (rng.random(60) < 0.5).astype(float)
    return features, action, loss


def attempt(act):
    """What came of it: a result, or a refusal that is one line; anything else is a failure."""
    try:
        return act()
    except EtipsError as refusal:
        if "\n" in str(refusal) or len(str(refusal)) < 10:
            pytest.fail(f"not one clear line: {refusal}")
        return refusal


def settings_of(learner):
    values = {f.name: getattr(learner, f.name) for f in fields(learner)}
    return copy.deepcopy({k: vars(v) if hasattr(v, "__dict__") else v for k, v in values.items()})
