from dataclasses import replace

import numpy as np
from served_runs import desk

from etips.serve.decision_card import WAIT, make_decision, make_tracks, put_together
from etips.serve.stay_view import StayView


def view(at=0, **advice):
    own = desk()
    made = StayView.of(own.advisor, own.form, own.stays, own.stays.rows[0].code, at)
    return replace(made, advice=replace(made.advice, **advice)) if advice else made


def test_the_card_tells_advice_support_and_each_part_on_its_own():
    own = view()
    card = make_decision(own)
    assert card.heading == own.advisor.names[own.advised]
    assert "Clinicians do this with such patients" in card.sentences[0]
    assert [part.name for part in card.parts] == ["fluid", "vasopressor"]
    for part in card.parts:
        assert sum(row.advised for row in part.levels) == sum(row.given for row in part.levels) == 1
        assert abs(sum(row.policy for row in part.levels) - 1) < 1e-6
    assert "url(#thin)" in card.picture or own.advice.supported[0].all()
    assert 'class="ring c0"' in card.picture


def test_where_the_policy_abstains_the_answer_is_to_wait():
    own = view(abstained=np.ones(view().n_decisions, bool))
    card = make_decision(own)
    assert card.heading.startswith("Wait")
    assert "abstains" in card.sentences[0]
    assert not any(row.advised for part in card.parts for row in part.levels)
    assert (card.agrees, card.close) == (None, False)
    assert 'class="ring c0"' not in card.picture
    assert all(own is None for _, track in make_tracks(own) for own in track.advised)


def test_a_close_call_names_the_second_choice():
    n = view().n_decisions
    chances = np.tile([0.0, 0.34, 0.33, 0.33, 0.0, 0.0], (n, 1))
    card = make_decision(view(probabilities=chances))
    assert card.close
    assert "fluid 0, vasopressor 2" in card.sentences[-1]


def test_one_part_may_be_followed_and_the_other_not():
    own = view()
    fluid, vasopressor = own.advisor.parts
    at = own.advised
    follow = [str(fluid.of_action[at]), str(vasopressor.of_action[at])]
    assert put_together(own, follow)[0].endswith("as advised.")
    other = str((vasopressor.of_action[at] + 1) % 3)
    said = put_together(own, [follow[0], other])
    assert "the policy would choose it" in said[0]
    assert "supported" in said[1]
    said = put_together(own, [follow[0], WAIT])
    assert said[0] == "You wait with vasopressor."
    assert "Clinicians choose fluid" in said[1]
    for nonsense in ([WAIT, WAIT], ["x", "99"], ["-1", ""]):
        assert put_together(own, nonsense)[0].startswith("You wait")


def test_tracks_tell_what_was_given_and_advised_part_by_part():
    own = view()
    (_, fluid), (_, vasopressor) = make_tracks(own)
    pairs = zip(fluid.logged, vasopressor.logged, strict=True)
    assert [3 * a + b for a, b in pairs] == own.stay.logged_action.tolist()
