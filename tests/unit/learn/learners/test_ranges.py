"""What a search may give to a setting."""

from dataclasses import FrozenInstanceError

import pytest

from etips.learn.learners.catalogue import Choice, Range


def test_choices_and_ranges_are_told_apart_by_what_they_hold():
    assert Choice((1, 2)) == Choice((1, 2)) != Choice((2, 1))
    assert Range(1, 2) == Range(1, 2, log=False, whole=False) != Range(1, 2, log=True)


def test_neither_can_be_changed_once_made():
    with pytest.raises(FrozenInstanceError):
        Choice((1,)).values = (2,)
    with pytest.raises(FrozenInstanceError):
        Range(1, 2).low = 0
