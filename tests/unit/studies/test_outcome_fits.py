"""What the policies of a study are evaluated with: networks never asked what they learned from."""

from dataclasses import replace

import numpy as np
import pytest

from etips.studies.folds import Dealing
from etips.studies.outcome_fits import BALANCE, PREDICTED, PROPENSITIES, EvaluationTask
from etips.studies.study_data import DataTask, SimulatedData, load_array, open_log
from etips.tasks.task import Task, do

SETTINGS = {"hidden": 4, "n_folds": 2, "epochs": 1}


def evaluation(data, table):
    return EvaluationTask(data, Dealing(table, 2, 0), settings=SETTINGS, device="cpu", seed=0)


def test_a_task_survives_its_way_to_a_worker():
    work = evaluation(SimulatedData("clinic", 60, 0), "table2")
    again = Task.from_json(Task("evaluation", work).to_json()).work
    assert again == work
    assert (again.trains_on, again.lenders) == ("cpu", ())


def test_folds_get_propensities_and_losses_of_all_decisions(tmp_path):
    data = SimulatedData("clinic", 60, 0)
    found = evaluation(data, "table2").run(tmp_path / "evaluation")
    assert str(found[BALANCE]).startswith(("balanced: imbalance", "left as fitted"))
    log = open_log(data, tmp_path)
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


def test_propensities_that_nobody_wants_balanced_are_said_to_be_as_fitted(tmp_path):
    work = evaluation(SimulatedData("clinic", 60, 0), "table2")
    plain = replace(work, settings={**SETTINGS, "balance": False})
    assert plain.run(tmp_path / "evaluation") == {BALANCE: "not balanced, as was asked"}
