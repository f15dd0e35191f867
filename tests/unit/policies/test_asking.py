"""Networks and trees asked in one way."""

import numpy as np
import pytest
import torch
from small_worlds import reseal, training
from tabular_worlds import thresholds, trial

import etips
from etips.errors import FileError
from etips.learn import DirectMethod, DoublyRobust, EtIPS, PredictiveModel
from etips.models.batches import step_tensors
from etips.models.forest import Forest
from etips.policies.asking import Asked, arrays_of

DATA, ROWS, CORNER = thresholds(600)
SHORT = {"training": training(6), "models": "trees", "seed": 1}


@pytest.fixture(scope="module", params=["EtIPS", "DoublyRobust", "DirectMethod", "PredictiveModel"])
def learner(request):
    made = {
        "EtIPS": lambda: EtIPS(**SHORT, translations=(0.3, 0.6)),
        "DoublyRobust": lambda: DoublyRobust(**SHORT),
        "DirectMethod": lambda: DirectMethod(**SHORT),
        "PredictiveModel": lambda: PredictiveModel(**SHORT),
    }
    return made[request.param]().fit(DATA)


def test_trees_say_of_a_batch_what_they_say_of_its_rows():
    forest = PredictiveModel(**SHORT).fit(DATA).policy_.propensity
    steps = step_tensors(DATA, earlier_actions=False, device=torch.device("cpu"))
    asked = Asked.of(DATA, steps, (forest, None))
    batch = next(iter(steps.batches(np.arange(10, 30), 20)))
    said = asked.outputs(forest, batch).numpy()
    order = batch.seen.numpy()
    np.testing.assert_array_equal(said, forest.outputs(ROWS.astype(np.float32))[:, order])


def test_a_policy_with_trees_is_opened_again_and_answers_alike(learner, tmp_path):
    policy = learner.policy_
    assert isinstance(policy.propensity, Forest)
    learner.save(tmp_path / "policy")
    again = etips.load(tmp_path / "policy")
    np.testing.assert_array_equal(again.predict_proba(DATA), learner.predict_proba(DATA))
    assert sorted(arrays_of(again.propensity)) == sorted(arrays_of(policy.propensity))


def test_a_row_is_answered_alone_as_among_others(learner):
    whole = learner.predict_proba(ROWS)
    np.testing.assert_allclose(learner.predict_proba(ROWS[5:8]), whole[5:8], atol=1e-6)


def test_where_the_answer_is_known_it_is_found(learner):
    if isinstance(learner, PredictiveModel):
        return
    assert (learner.predict(ROWS) == CORNER).mean() > 0.85


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: {**arrays, "propensity.member": arrays["propensity.member"] + 9},
        lambda arrays: {**arrays, "propensity.column": arrays["propensity.column"] + 99},
        lambda arrays: {k: v for k, v in arrays.items() if k != "propensity.cut"},
        lambda arrays: {**arrays, "propensity.base": arrays["propensity.base"][:1]},
        lambda arrays: {**arrays, "propensity.more": arrays["propensity.base"]},
    ],
)
def test_forged_trees_are_refused(change, tmp_path):
    learner = EtIPS(**SHORT, translations=(0.3,)).fit(DATA)
    learner.save(tmp_path / "policy")
    reseal(tmp_path / "policy", weights=change)
    with pytest.raises(FileError, match="does not hold what its manifest says"):
        etips.load(tmp_path / "policy")


def test_nothing_is_made_of_a_trial_without_effect():
    data = trial(800)
    for learner in (EtIPS(**SHORT, translations=(0.3, 0.6)), DoublyRobust(**SHORT)):
        assert learner.fit(data).policy_.kind in ("imitation", "constant")
    assert isinstance(DirectMethod(**SHORT).fit(data).policy_.networks, Forest)
