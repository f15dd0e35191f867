"""What an explanation may hold."""

from etips.explanation.explanation_parts import ExplanationParts


def test_what_was_not_asked_for_is_null():
    assert ExplanationParts().to_json() == {
        "stay": None,
        "overall": None,
        "seeds": None,
        "tree": None,
        "rules": None,
    }
