"""One method on one fold, and what policies are evaluated with: learned, answered, put together."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from small_worlds import CLINIC

from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.recipes import make_learner
from etips.policies.deployed import Deployed, take_likeliest
from etips.results.followed_policies import Followed, as_followed
from etips.results.study_result import FitRecord, PropensityQuality
from etips.results.summaries import summarize_path
from etips.runs.tasks import Task, do
from etips.studies.fits import (
    FitTask,
    fit_record,
    join_folds,
    load_followed,
    mix_folds,
    save_followed,
    turn_round,
)
from etips.studies.outcome_fits import PREDICTED, PROPENSITIES, EvaluationTask
from etips.studies.study_data import DataTask, Dealing, SimulatedData, load_array, open_log

DATA, DEALING = SimulatedData("clinic", 60, 0), Dealing("table2", folds=2, seed=0)
SETTINGS = {"hidden": 4, "n_folds": 2, "epochs": 1}
CHANCES = np.array([[0.7, 0.3], [0.2, 0.8]])
AWAY = np.array([False, True])
SURE = Followed(take_likeliest(CHANCES, AWAY), Deployed(CHANCES, AWAY))
PATH = (
    Candidate(0.3, 0.4, 0.01, 1.0, 90.0, chosen=True),
    Candidate(math.nan, math.inf, math.inf, 0.0, 0.0),
)


def fit_task(method="direct", settings=SETTINGS, **more):
    return FitTask(DATA, DEALING, 1, method, settings, device="cpu", seed=0, **more)


def test_it_answers_the_stays_it_holds_out_and_says_how_it_went(tmp_path):
    fit = fit_record(fit_task().run(tmp_path / "direct-fold-2"))
    assert (fit.n_learned_from, fit.n_held_out, fit.path) == (30, 30, ())
    assert fit.quality.log_loss > 0
    policy = load_followed(tmp_path / "direct-fold-2").deployed.probabilities
    log = open_log(DATA, tmp_path)
    held = DEALING.part(log, 1).held
    assert policy.shape == (log.subset(held).n_decisions, log.n_actions)
    assert not (tmp_path / "direct-fold-2" / "checkpoint").exists()


def test_a_borrowed_stage_changes_nothing_and_a_lender_keeps_it(tmp_path):
    fit_task("predictive", lends=True).run(tmp_path / "predictive-fold-2")
    assert (tmp_path / "predictive-fold-2" / "checkpoint" / "propensity.safetensors").is_file()
    lent = {"propensity": "predictive-fold-2", "outcome": "nobody"}
    borrowed = fit_task(lent=lent).run(tmp_path / "borrows")
    assert borrowed == fit_task().run(tmp_path / "alone")
    one, other = (load_followed(tmp_path / name).deployed for name in ("borrows", "alone"))
    assert (one.probabilities == other.probabilities).all()


def test_a_turned_direct_method_takes_the_action_of_most_predicted_loss():
    stays = CLINIC.log(60, seed=0)
    settings = {"hidden": 4, "n_folds": 2, "epochs": 3, "support": 0.0, "interaction": False}
    learner = make_learner("direct", settings, device="cpu").fit(stays)
    least, most = learner.predict(stays), turn_round(learner.policy_).predict(stays)
    bias = learner.policy_.networks.parameters["head.bias"].mean(0)
    assert set(least) == {int(bias.argmin())}
    assert set(most) == {int(bias.argmax())}


def test_a_record_survives_json():
    quality = PropensityQuality(log_loss=0.5, accuracy=0.6, calibration_error=None)
    full = FitRecord(
        n_learned_from=50,
        n_held_out=25,
        quality=quality,
        support=0.1,
        clipped_share=0.02,
        path=summarize_path(PATH),
    )
    for record in (full, FitRecord(n_learned_from=50, n_held_out=25)):
        text = json.dumps(asdict(record), allow_nan=False)
        assert fit_record(json.loads(text)) == record


@pytest.mark.parametrize("policy", [SURE, as_followed(CHANCES)], ids=["sure", "drawn"])
def test_what_is_written_is_read(tmp_path, policy):
    save_followed(policy, tmp_path)
    found = load_followed(tmp_path)
    assert (found.deployed.probabilities == policy.deployed.probabilities).all()
    assert (found.deployed.abstained == policy.deployed.abstained).all()
    assert (found.drawn is None) == (policy.drawn is None)
    if policy.drawn is not None:
        assert (found.drawn.probabilities == CHANCES).all()


def test_folds_that_share_a_test_part_are_mixed():
    one, other = as_followed(np.array([[1.0, 0.0]])), as_followed(np.array([[0.0, 1.0]]))
    found = mix_folds([one, other], None)
    assert found.deployed.probabilities == pytest.approx(np.array([[0.5, 0.5]]))
    assert found.drawn is None


def test_a_mixture_abstains_where_all_do_and_leaves_part_of_the_rest_to_the_clinicians():
    clinicians = np.array([[0.5, 0.5], [0.6, 0.4]])
    both = mix_folds([SURE, SURE], clinicians)
    assert both.deployed.abstained.tolist() == [False, True]
    assert both.drawn.probabilities[0] == pytest.approx([0.7, 0.3])
    one = mix_folds([SURE, as_followed(np.array([[1.0, 0.0], [1.0, 0.0]]))], clinicians)
    assert not one.deployed.abstained.any()
    assert one.deployed.probabilities.tolist() == [[1.0, 0.0], pytest.approx([0.8, 0.2])]


def test_folds_that_were_held_out_once_answer_for_themselves():
    folds = [np.array([True, False, True]), np.array([False, True, False])]
    found = join_folds([SURE, as_followed(np.array([[0.0, 1.0]]))], folds)
    assert found.deployed.probabilities.tolist() == [[1.0, 0.0], [0.0, 1.0], [0.2, 0.8]]
    assert found.deployed.abstained.tolist() == [False, False, True]
    assert found.drawn.probabilities.tolist() == [[0.7, 0.3], [0.0, 1.0], [0.2, 0.8]]


def evaluation(data, table):
    return EvaluationTask(data, Dealing(table, 2, 0), settings=SETTINGS, device="cpu", seed=0)


def test_folds_get_propensities_and_losses_of_all_decisions(tmp_path):
    evaluation(DATA, "table2").run(tmp_path / "evaluation")
    log = open_log(DATA, tmp_path)
    propensities = load_array(tmp_path / "evaluation" / PROPENSITIES)
    predicted = load_array(tmp_path / "evaluation" / PREDICTED)
    assert propensities.shape == predicted.shape == (log.n_decisions, log.n_actions)
    assert propensities.sum(axis=1) == pytest.approx(np.ones(log.n_decisions))
    assert ((predicted > 0) & (predicted < 1)).all()


def test_a_test_part_gets_losses_from_all_outside_it_and_keeps_its_known_propensities(tmp_path):
    policy = {"tolerance": 0.6, "hidden": 4}
    data = SimulatedData("digits-zeros", 60, 0, policy=policy)
    do(Task("data", DataTask(data)), tmp_path / "data")
    assert evaluation(data, "table1").run(tmp_path / "evaluation") == {}
    assert load_array(tmp_path / "evaluation" / PREDICTED).shape == (6, 3)
    assert not (tmp_path / "evaluation" / PROPENSITIES).exists()
