"""lightgbm learns a policy that beats what was done, the same each time."""

from peer_lessons import gain_of


def test_it_beats_the_clinicians():
    assert gain_of("lightgbm") > 0.1
