import json

import numpy as np
from served_runs import desk

from etips.serve.advice import Advice
from etips.serve.spoken import Recommendation, encode_answers


def test_answers_are_as_the_description_says():
    chances = np.full((2, 6), 1 / 6)
    advice = Advice(chances, np.array([False, True]), None, 0.02)
    told = json.loads(encode_answers(desk().advisor, advice, np.array([0, 3]), np.array([1, 2])))
    made = Recommendation.model_validate(told)
    first, second = made.decisions
    assert (first.recommended, first.support, first.clinicians) == (made.actions[0], None, None)
    assert (second.stay, second.step, second.recommended) == (3, 2, None)
    assert made.least_support == 0.02
