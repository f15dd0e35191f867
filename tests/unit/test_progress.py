"""How long something takes, in words."""

import pytest

from etips.progress import duration


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 s"), (45, "45 s"), (119, "119 s"), (150, "2 min"), (7100, "118 min"), (9000, "2 h")],
)
def test_a_duration_is_told_in_the_unit_that_suits_it(seconds, words):
    assert duration(seconds) == words
