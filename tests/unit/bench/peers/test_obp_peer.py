"""obp-ipw learns a policy that beats what was done, the same each time."""

from peer_lessons import gain_of


def test_it_beats_the_clinicians():
    assert gain_of("obp-ipw") > 0.1
