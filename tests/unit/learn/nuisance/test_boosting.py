"""Trees of scikit-learn as arrays of ours: the same answers, gaps included."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from tabular_worlds import thresholds, trial, with_gaps

import etips
from etips.errors import SettingError
from etips.learn import BoostedTrees, EtIPS
from etips.learn.nuisance.boosting import LEAVES, _tree
from etips.models.forest import plant

ROWS = np.random.default_rng(0).normal(size=(900, 5))


def forest_of(model, n_outputs):
    """All trees of a fitted model, with its base."""
    trees = [_tree(one.nodes) for each in model._predictors for one in each]
    output = list(range(n_outputs)) * (len(trees) // n_outputs)
    base = np.asarray(model._baseline_prediction, np.float64).reshape(1, n_outputs)
    return plant(trees, [0] * len(trees), output, base)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_classifier_as_arrays_says_what_scikit_learn_says(n_classes, gaps):
    rows = with_gaps(ROWS, share=gaps)
    code = np.digitize(ROWS[:, 0] + ROWS[:, 1] ** 2, [0.0, 1.0, 2.0]) % n_classes
    model = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=LEAVES).fit(rows, code)
    n_outputs = 1 if n_classes == 2 else n_classes
    asked = np.vstack([rows, with_gaps(np.random.default_rng(1).normal(size=(300, 5)), share=0.5)])
    theirs = model.decision_function(asked).reshape(len(asked), n_outputs)
    np.testing.assert_allclose(
        forest_of(model, n_outputs).outputs(asked)[0], theirs, rtol=0, atol=1e-12
    )


def test_a_regressor_as_arrays_says_what_scikit_learn_says():
    rows = with_gaps(ROWS)
    target = np.where(ROWS[:, 0] > 0, ROWS[:, 1], 3.0)
    model = HistGradientBoostingRegressor(max_iter=40, max_leaf_nodes=LEAVES).fit(rows, target)
    ours = forest_of(model, 1).outputs(rows)[0, :, 0]
    np.testing.assert_allclose(ours, model.predict(rows), rtol=0, atol=1e-12)


def test_losses_of_every_action_are_those_of_rows_that_took_it():
    """What was grown on rows beside 0/1 columns of actions answers for each action at once."""
    rng = np.random.default_rng(0)
    action = rng.integers(0, 3, len(ROWS))
    target = ROWS[:, 0] * (action == 1) + (action == 2) + 0.1 * rng.normal(size=len(ROWS))
    learns = np.ones(len(ROWS), bool)
    settings = BoostedTrees(rounds=40)
    grown = settings.grow_amounts(ROWS, action, 3, target, learns, ~learns)
    forest = plant(grown.trees, [0] * len(grown.trees), grown.output, np.full((1, 3), grown.base))
    beside = np.hstack([ROWS, np.eye(3)[action]])
    model = HistGradientBoostingRegressor(
        **settings._settings(), max_iter=40, early_stopping=False
    ).fit(beside, target)
    for asked in range(3):
        theirs = model.predict(np.hstack([ROWS, np.eye(3)[np.full(len(ROWS), asked)]]))
        np.testing.assert_allclose(forest.outputs(ROWS)[0, :, asked], theirs, rtol=0, atol=1e-12)


def test_rounds_end_where_held_out_rows_liked_it_best():
    data = trial(400)
    rows, stops = data.sequence[:].astype(float), np.arange(400) % 4 == 0
    grown = BoostedTrees().grow_classes(rows, data.logged_action, ~stops, stops)
    assert len(grown.trees) <= 8 * 3  # there is nothing to learn


@pytest.mark.parametrize("n_actions", [2, 3])
def test_it_is_a_propensity_model_of_its_own(n_actions):
    data, _, corner = thresholds(4000)
    data = etips.from_arrays(
        data.sequence[:], data.logged_action, data.logged_loss, n_actions=n_actions
    )
    model = BoostedTrees().fit(data)
    said = model.predict_proba(data)
    np.testing.assert_allclose(said.sum(axis=1), 1)
    assert said[corner, 1].mean() == pytest.approx(0.75, abs=0.1)
    assert said[~corner, 1].mean() == pytest.approx(0.25, abs=0.1)
    if n_actions == 3:
        assert said[:, 2].max() < 0.01
    again = EtIPS(propensity=BoostedTrees(), translations=(0.5,), training=quick()).fit(data)
    assert again.policy_.kind in ("softmax", "imitation", "constant")


def quick():
    from small_worlds import training

    return training()


def test_an_unfitted_model_and_settings_beyond_their_limits_are_refused():
    with pytest.raises(SettingError, match="must be fitted first"):
        BoostedTrees().predict_proba(trial(20))
    for wrong in (
        {"rounds": 0},
        {"learning_rate": 0.0},
        {"least_rows": 0.5},
        {"seed": -1},
        {"ridge": -1.0},
    ):
        with pytest.raises(SettingError, match=next(iter(wrong))):
            BoostedTrees(**wrong)


def test_a_rare_action_that_is_told_by_a_flag_does_not_leap():
    """One in a hundred, nearly all behind a flag: without a ridge the first round is the last."""
    rng = np.random.default_rng(0)
    flag = rng.random(4000) < 0.05
    action = np.where(flag & (rng.random(4000) < 0.2), 2, rng.integers(0, 2, 4000))
    rows = np.column_stack([flag, rng.normal(size=(4000, 3))]).astype(float)
    stops = np.arange(4000) % 5 == 0
    kept = [
        len(BoostedTrees(ridge=ridge).grow_classes(rows, action, ~stops, stops).trees)
        for ridge in (0.0, 5.0)
    ]
    assert kept[1] > max(kept[0], 3 * 5)


THREADS = """
import hashlib, sys
sys.path.insert(0, "tests")
from tabular_worlds import thresholds
from etips.learn import BoostedTrees
data = thresholds(800)[0]
said = BoostedTrees().fit(data).predict_proba(data)
print(hashlib.sha256(said.tobytes()).hexdigest())
"""


def test_figures_do_not_depend_on_the_number_of_threads():
    import os

    found = {
        subprocess.run(
            [sys.executable, "-c", THREADS],
            env={**os.environ, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "4")
    }
    assert len(found) == 1
