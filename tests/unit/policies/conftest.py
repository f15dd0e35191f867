"""A policy on disk."""

import pytest
from small_worlds import small, ward

from etips.learn import DoublyRobust


@pytest.fixture(scope="session")
def learner():
    return DoublyRobust(**small(support=0.1)).fit(ward())


@pytest.fixture
def folder(learner, tmp_path):
    learner.save(tmp_path / "policy")
    return tmp_path / "policy"
