"""econml's policy learners beat what was done, the same each time."""

import pytest
from peer_lessons import gain_of


@pytest.mark.parametrize("name", ["econml-tree", "econml-forest"])
def test_they_beat_the_clinicians(name):
    assert gain_of(name) > 0.1
