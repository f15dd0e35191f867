"""The page: whole, self-contained, safe whatever names hold."""

from dataclasses import replace

import numpy as np

from etips.explanation.explanation_page import heat_map, render_explanation
from etips.explanation.explanation_parts import ExplanationParts
from etips.explanation.global_attribution import attribute_overall
from etips.explanation.stay_explanation import explain_stay


def test_a_page_shows_a_stay_and_the_whole_and_loads_nothing(policy, log, longest):
    parts = ExplanationParts(explain_stay(policy, longest), attribute_overall(policy, log, most=30))
    page = render_explanation(parts)
    assert "The stay, decision by decision" in page
    assert "What the policy goes by" in page
    assert "http://" not in page
    assert "https://" not in page
    assert page.count("<details") == longest.n_decisions


def test_names_are_text_whatever_they_hold(policy, longest):
    stay = replace(explain_stay(policy, longest), stay="<script>alert(1)</script>")
    page = render_explanation(ExplanationParts(stay))
    assert "<script" not in page
    assert "<script" not in heat_map(np.ones((1, 1)), ["<script>"], ["<b>"], "a map")
