"""Policies that are fitted once for all tests of explanations."""

from dataclasses import replace

import numpy as np
import pytest
from small_worlds import small, ward

from etips.learn import DirectMethod, EtIPS, PredictiveModel


@pytest.fixture(scope="session")
def log():
    return ward(200)


@pytest.fixture(scope="session")
def gappy(log):
    """A log with missing values and a logarithm."""
    sequence = np.abs(np.array(log.sequence))
    sequence[np.random.default_rng(0).random(sequence.shape) < 0.2] = np.nan
    schema = replace(log.schema, indicators=log.schema.sequence, logarithms=("lactate",))
    return replace(log, sequence=sequence, schema=schema)


@pytest.fixture(scope="session")
def policy(log):
    """Networks that read stays of several steps and static features."""
    return EtIPS(**small(translations=(0.3, 0.7))).fit(log).policy_


@pytest.fixture(scope="session")
def other_policies(log):
    """Kinds of policies other than a softmax."""
    return {
        "least loss": DirectMethod(**small()).fit(log).policy_,
        "imitation": PredictiveModel(**small()).fit(log).policy_,
    }


@pytest.fixture(scope="session")
def longest(log):
    """A stay of six steps."""
    return log.subset([int(np.flatnonzero(np.diff(log.offsets) == 6)[0])])
