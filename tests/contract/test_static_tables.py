"""Tables with static features alone, and one row a patient: every learner, saved and opened."""

import numpy as np
import pytest
from small_worlds import training
from tabular_worlds import thresholds

import etips
from etips.learn import DirectMethod, DoublyRobust, EtIPS, PredictiveModel

DATA, ROWS, _ = thresholds(400)
STILL = etips.from_arrays(np.zeros((400, 0)), DATA.logged_action, DATA.logged_loss, static=ROWS)
SHORT = {"training": training(4), "seed": 0}
LEARNERS = {
    "EtIPS": lambda **more: EtIPS(**SHORT, translations=(0.5,), **more),
    "DoublyRobust": lambda **more: DoublyRobust(**SHORT, **more),
    "DirectMethod": lambda **more: DirectMethod(**SHORT, **more),
    "PredictiveModel": lambda **more: PredictiveModel(**SHORT, **more),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_static_features_are_enough(name, tmp_path):
    learner = LEARNERS[name]().fit(STILL)
    learner.save(tmp_path / "policy")
    again = etips.load(tmp_path / "policy")
    np.testing.assert_array_equal(again.predict_proba(STILL), learner.predict_proba(STILL))
    assert np.isfinite(learner.score(STILL))


def test_such_a_table_is_evaluated_by_a_stack_in_which_models_that_bend_count():
    asked = thresholds(600, seed=1)[0]
    policy = LEARNERS["DirectMethod"]().fit(DATA)
    results = etips.evaluate(policy, asked)
    notes = results.methods[0].notes
    for what in ("propensities", "predicted losses"):
        assert notes[what].startswith("cross-fitted on the evaluated stays: ")
        assert any(model in notes[what] for model in ("forest", "boosting", "products"))
    assert results.methods[0].estimates[0].risk < asked.logged_loss.mean() - 0.05
