import numpy as np
from served_runs import desk, fitted, ward

from etips.data.schema import Schema
from etips.serve.advice import Advice, parts_of


def test_advice_is_what_the_policy_answers_with_what_clinicians_do():
    own, data = desk().advisor, ward(20, seed=3)
    advice = own.ask(data)
    np.testing.assert_array_equal(advice.probabilities, fitted().answer(data).probabilities)
    np.testing.assert_allclose(advice.clinicians, fitted().propensities(data))
    np.testing.assert_array_equal(advice.supported, advice.clinicians >= fitted().support)


def test_doubt_is_how_close_the_second_choice_comes():
    chances = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [0.5, 0.3, 0.2]])
    advice = Advice(chances, np.zeros(3, bool), None, 0.01)
    np.testing.assert_allclose(advice.doubt, [1.0, 0.0, 0.8])
    assert advice.supported.all()


def test_the_parts_of_an_action_add_up_over_the_others():
    advisor = desk().advisor
    fluid, vasopressor = advisor.parts
    assert (fluid.name, vasopressor.name) == ("fluid", "vasopressor")
    chances = np.array([[0.1, 0.2, 0.0, 0.3, 0.1, 0.3]])
    advice = Advice(chances, np.zeros(1, bool), chances, 0.01)
    shares = advisor.shares(fluid, advice, 0)
    assert [round(own.policy, 6) for own in shares] == [0.3, 0.7]
    shares = advisor.shares(vasopressor, advice, 0)
    assert [round(own.clinicians, 6) for own in shares] == [0.4, 0.3, 0.3]
    assert [own.words for own in shares] == ["none", "class 1", "class 2"]


def test_parts_can_be_put_together_anew():
    advisor = desk().advisor
    assert advisor.labels[advisor.combine((1, 2))] == "fluid 1, vasopressor 2"
    assert advisor.combine((1, 9)) is None


def test_plain_actions_have_no_parts():
    assert parts_of(Schema(("x",), 3, actions=("a", "b", "c"))) == ()
