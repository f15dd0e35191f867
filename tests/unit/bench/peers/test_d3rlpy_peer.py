"""d3rlpy's learners give a policy, the same each time; in a moment of learning not a good one."""

import pytest
from peer_lessons import gain_of


@pytest.mark.parametrize("name", ["d3rlpy-cql", "d3rlpy-bcq"])
def test_they_learn(name):
    assert gain_of(name) > -0.3
