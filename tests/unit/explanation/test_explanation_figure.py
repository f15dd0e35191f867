"""Drawings."""

import pytest

from etips.errors import SettingError
from etips.explanation.explanation_figure import draw_explanation
from etips.explanation.explanation_parts import ExplanationParts
from etips.explanation.global_attribution import attribute_overall
from etips.explanation.stay_explanation import explain_stay


def test_a_stay_and_the_whole_are_drawn_the_same_way_twice(policy, log, longest):
    stay = ExplanationParts(explain_stay(policy, longest))
    whole = ExplanationParts(overall=attribute_overall(policy, log, most=20))
    for parts in (stay, whole):
        drawn = draw_explanation(parts)
        assert drawn.startswith(b"\x89PNG")
        assert drawn == draw_explanation(parts)


def test_rules_alone_have_no_drawing():
    with pytest.raises(SettingError, match="drawing"):
        draw_explanation(ExplanationParts())
