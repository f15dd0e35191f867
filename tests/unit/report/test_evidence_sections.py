"""Sections on how far the figures hold."""

import pytest
from report_documents import Page, changed, render, section_of, words


def drawings(section):
    return [e for e in section.all("div", "svg") if e.attributes.get("role") == "img"]


def test_every_policy_has_a_drawing_of_all_its_estimates(found, page):
    section = section_of(page, "evidence")
    assert len(list(section.all("figure"))) == len(found["methods"])
    for drawing, method in zip(drawings(section), found["methods"], strict=True):
        for estimate in method["estimates"]:
            assert estimate["label"] in drawing.text


def test_a_formula_that_is_not_ours_is_called_by_its_name_and_not_explained(found):
    made, main = changed(found)
    main["estimates"][0] |= {"estimator": "own", "label": None, "sentence": None}
    section = section_of(Page(render(made)), "evidence")
    assert "own" in drawings(section)[0].text
    assert "own" not in [term.text for term in section.all("dt")]


RISK = {"estimator": "wdr", "risk": 2.1, "std_error": 0.1, "low": 1.9, "high": 2.3}
WHOLE = {
    "outcome": "sum",
    "estimates": [{**RISK, "label": "Doubly robust", "sentence": "A model, corrected."}],
    "clinicians": {**RISK, "estimator": "logged", "risk": 1.5},
    "gain": {"difference": 0.6, "std_error": 0.1, "low": 0.4, "high": 0.8, "better": False},
    "effective_stays": 120.0,
    "weight_share": 1.0,
    "n_corrected": 3,
    "longest_stay": 8,
    "verdict": "doubtful",
    "reasons": ["For some it rests on a model alone."],
    "sentence": "The policy decides throughout: worse.",
    "one_decision": "One decision changed, the rest as logged: better.",
    "reversal": True,
}


def with_whole(found, **changes):
    return changed(found, whole_stay={**WHOLE, **changes})[0]


def test_both_risks_stand_side_by_side_with_a_picture(found):
    assert 'id="whole-stay"' not in render(found)
    section = section_of(Page(render(with_whole(found))), "whole-stay")
    for told in ("One decision changed", "decides throughout", "on a model alone", "the first 3"):
        assert told in section.text
    assert len(drawings(section)) == 1


@pytest.mark.parametrize(
    ("low", "told"), [(0.4, "is a loss over the whole stay"), (-0.1, "looks like a loss")]
)
def test_a_reversal_is_told_in_the_first_lines(found, low, told):
    text = words(with_whole(found, gain={**WHOLE["gain"], "low": low}), "finding")
    assert text.index(told) < text.index("the risk is estimated")
    assert "A gain at one decision that" not in words(with_whole(found, reversal=False), "finding")


def test_hidden_numbers_leave_a_page_and_huge_intervals_are_arrows(found):
    nothing = dict.fromkeys(WHOLE["gain"])
    made = with_whole(found, gain=nothing, clinicians=None, effective_stays=None, reversal=False)
    assert "not shown" in words(made, "whole-stay")
    assert "under 11" in words(made, "whole-stay")
    huge = with_whole(found, gain={**WHOLE["gain"], "low": -1e6, "high": 1e6})
    section = section_of(Page(render(huge)), "whole-stay")
    assert sum("tip" in e.attributes.get("class", "").split() for e in section.all("i")) == 2


@pytest.mark.parametrize(
    ("gain", "gamma", "told"),
    [(None, 1.5, "not known"), (0.1, 1.0, "no gain"), (-0.1, 1.5, "1.50"), (-0.1, None, "over")],
)
def test_what_could_undo_a_gain_is_told_for_every_kind_of_gain(found, gain, gamma, told):
    made, _ = changed(found)
    for method in made["methods"]:
        method["gain"] = None if gain is None else {**method["gain"], "difference": gain}
        method["sensitivity"] |= {"gamma_point": gamma, "gamma_interval": gamma}
    section = section_of(Page(render(made)), "sensitivity")
    columns = ("Could undo the gain", "Chance allowed for")
    cells = [c.text for c in section.all("td") if c.attributes["data-label"] in columns]
    assert len(cells) == 4
    assert all(told in cell for cell in cells)


def test_recorded_features_stand_beside_a_hidden_one(found):
    made, method = changed(found)
    method["gain"] |= {"difference": -0.1}
    features = [
        {"names": ["lactate"], "gamma": 2.0},
        {"names": ["lactate", "SOFA"], "gamma": 2.5},
    ]
    method["sensitivity"] |= {"gamma_point": 2.2, "balanced": True, "features": features}
    assert "lactate and SOFA together 2.50" in words(made, "sensitivity")
    assert "as strong as lactate and SOFA together (odds ratio 2.50)" in words(made, "finding")


CONTROL = {
    "name": "lactate before",
    "seen": False,
    "difference": -0.5,
    "low": -0.8,
    "high": -0.2,
    "level": 0.99,
    "spread": 2.0,
    "warning": True,
}


def test_a_control_that_warns_says_so_in_a_word_and_in_standard_deviations(found):
    assert 'id="negative-control"' not in render(found)

    def told(**changes):
        return words(changed(found, negative_control=CONTROL | changes)[0], "negative-control")

    for part in ("lactate before", "no: a warning", "\u22120.25", "99 %"):
        assert part in told()
    assert "it could be" in told(low=-1.0, high=0.1, warning=False)
    assert "which the propensities used" in told(seen=True)
    assert "not known" in told(difference=None, low=None, high=None, spread=None, warning=False)


MISSING = {
    "treatment": "drop",
    "n_missing": 70,
    "n_taken": 400,
    "by_action": [
        {"action": 0, "n_missing": 20, "n_taken": 200},
        {"action": 1, "n_missing": 50, "n_taken": 100},
    ],
    "raised_share": None,
    "sentence": "70 of 400",
}


def test_missing_losses_are_counted_by_action_the_largest_share_first(found):
    assert 'id="missing-losses"' not in render(found)
    made, _ = changed(found)
    made["data"]["missing_loss"] = MISSING
    section = section_of(Page(render(made)), "missing-losses")
    assert "70 of 400" in section.text
    assert "They are left out" in section.text
    shares = [c.text.strip() for c in section.all("td") if c.attributes["data-label"] == "Share"]
    assert shares == ["50\u00a0%", "10\u00a0%"]
    made["data"]["missing_loss"] |= {"n_missing": None, "n_taken": None, "by_action": []}
    assert "A few" in words(made, "missing-losses")


def test_what_missing_losses_could_have_been_is_shown_where_they_are_weighted(found):
    limits = {"risk_low": 0.1, "risk_high": 0.4, "gain_low": -0.2, "gain_high": 0.1}
    rows = [{"gamma": 1.0, **limits}, {"gamma": None, **limits}]
    bounds = {"gamma_point": 1.8, "gamma_interval": None, "bounds": rows}
    made, _ = changed(found, missing_loss=bounds)
    made["data"]["missing_loss"] = {**MISSING, "treatment": "weight", "raised_share": 0.01}
    for told in ("speaks for others", "anything", "factor of 1.80", "raised to 5"):
        assert told in words(made, "missing-losses")
