"""Policies begin at the clinicians, whoever imitates these."""

import numpy as np
import pytest
import torch
from small_worlds import training
from tabular_worlds import thresholds

from etips.learn.fitting.driver import drive
from etips.learn.fitting.prepare import prepare
from etips.learn.nuisance.boosting import BoostedTrees
from etips.learn.nuisance.policy_start import PolicyStart
from etips.learn.nuisance.propensity import fit_propensity
from etips.learn.nuisance.tree_models import fit_tree_propensity
from etips.models.answers import outputs_at
from etips.models.encoders.last_step import LastStep

DATA = thresholds(300)[0]


@pytest.fixture(scope="module")
def prepared():
    return prepare(DATA, n_folds=2, seed=0, device=torch.device("cpu"))


def test_beside_trees_networks_that_say_nothing_yet_are_the_clinicians(prepared):
    trees = fit_tree_propensity(prepared, BoostedTrees())
    start = PolicyStart.of(prepared, trees, LastStep(4), seed=0)
    batch = next(iter(prepared.steps.batches(np.arange(300), 300)))
    outputs = outputs_at(start.sets(2), batch, prepared.steps)
    assert outputs.abs().max() == 0
    said = start.logits(outputs, batch.seen).softmax(-1)[3]
    likely = torch.from_numpy(np.exp(trees.log_probabilities)).float()
    torch.testing.assert_close(said, likely[batch.seen], atol=1e-6, rtol=0)


def test_networks_that_imitate_are_the_start_themselves(prepared):
    fitted = drive(fit_propensity(prepared, LastStep(4), training().propensity, seed=0))
    start = PolicyStart.of(prepared, fitted, LastStep(4), seed=0)
    assert start.bundle is fitted.bundle
    outputs = torch.ones(2, 3, 2)
    assert start.logits(outputs, torch.arange(3)) is outputs
