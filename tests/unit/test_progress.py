"""Progress is a plain call; nobody need listen."""

from etips.progress import no_progress


def test_nobody_is_told_and_nothing_comes_back():
    assert no_progress("reading", 0.5) is None
