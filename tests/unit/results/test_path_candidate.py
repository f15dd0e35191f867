"""What candidates of a path are called."""

import pytest

from etips.results.path_candidate import PathCandidate


def called(translation=None, action=None, **more):
    shown = PathCandidate(translation, action, None, None, None, None, False, True, **more)
    return shown.called_with(("mild", "strong"))


@pytest.mark.parametrize(
    ("candidate", "name"),
    [
        ({"clinicians": True}, "as the clinicians"),
        ({"action": 1}, "always strong"),
        ({"action": 7}, "always action 7"),
        ({}, "trained"),
        ({"translation": 0.5, "acts": "draws"}, "translation 0.5, drawn"),
        ({"form": "doubly robust", "acts": "likeliest"}, "doubly robust, likeliest action"),
        ({"form": "log-sum-exp", "strength": 0.1}, "log-sum-exp 0.1"),
        (
            {"form": "smoothed gains", "strength": 1.0, "translation": 0.49812},
            "smoothed gains 1, translation 0.498",
        ),
    ],
)
def test_a_candidate_is_called_by_what_it_was_trained_by(candidate, name):
    assert called(**candidate) == name
