"""Learners in scikit-learn's pipelines, searches and cross-validations."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from small_worlds import small, training
from tabular_worlds import thresholds

from etips.errors import DataError, SettingError
from etips.learn import EtIPS, MostFrequent, PredictiveModel, RandomPolicy, Training

DATA, ROWS, CORNER = thresholds(400)
ACTION, LOSS = DATA.logged_action, DATA.logged_loss


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def learner(**more):
    return EtIPS(**small(translations=(0.5,), **{"training": training(4), **more}))


def test_the_score_is_minus_the_self_normalised_risk_by_hand():
    fitted = learner().fit(ROWS, ACTION, LOSS)
    chance = fitted.policy_.propensities(DATA)[np.arange(400), ACTION]
    weight = fitted.deployed(DATA).probabilities[np.arange(400), ACTION] / chance
    assert fitted.score(ROWS, ACTION, LOSS) == pytest.approx(-(weight @ LOSS) / weight.sum())
    assert fitted.score(DATA) == fitted.score(ROWS, ACTION, LOSS)
    twice = fitted.score(
        np.vstack([ROWS, ROWS[:9]]), *(np.append(v, v[:9]) for v in (ACTION, LOSS))
    )
    count = 1 + (np.arange(400) < 9)
    assert fitted.score(ROWS, ACTION, LOSS, sample_weight=count) == pytest.approx(twice)


def test_the_score_weighs_by_the_propensities_that_it_is_given():
    fitted = MostFrequent().fit(ROWS, ACTION, LOSS)
    chance = np.where(CORNER == ACTION, 0.75, 0.25)
    weight = (ACTION == 0) / chance
    given = fitted.score(ROWS, ACTION, LOSS, propensity=chance)
    assert given == pytest.approx(-(weight @ LOSS) / weight.sum())
    assert fitted.score(ROWS, ACTION, LOSS) == pytest.approx(-LOSS[ACTION == 0].mean())
    assert np.isfinite(RandomPolicy().fit(ROWS, ACTION, LOSS).score(ROWS, ACTION, LOSS))


def test_a_better_policy_scores_higher():
    better = learner(training=training(30)).fit(ROWS, ACTION, LOSS)
    usual = PredictiveModel(**small()).fit(ROWS, ACTION, LOSS)
    assert better.score(ROWS, ACTION, LOSS) > usual.score(ROWS, ACTION, LOSS) + 0.1


def test_a_score_without_losses_is_refused():
    with pytest.raises(DataError, match=r"^loss: must be given to score\. .*metadata_routing"):
        learner().fit(ROWS, ACTION, LOSS).score(ROWS, ACTION)


@pytest.mark.usefixtures("routing")
def test_a_search_over_support_hands_on_losses_and_finds_the_best():
    never = GridSearchCV(learner(), {"support": [0.0, 0.9]}, cv=2).fit(ROWS, ACTION, loss=LOSS)
    scores = never.cv_results_["mean_test_score"]
    assert never.best_params_ == {"support": 0.0}  # above 0.9 it abstains everywhere
    assert scores[0] > scores[1]
    assert never.best_estimator_.support_ == 0.0
    assert never.predict(ROWS).shape == (400,)
    assert never.score(ROWS, ACTION, loss=LOSS) > -LOSS.mean()


@pytest.mark.usefixtures("routing")
def test_a_pipeline_is_fitted_scored_searched_and_cross_validated():
    pipeline = make_pipeline(StandardScaler(), learner())
    pipeline.fit(ROWS, ACTION, loss=LOSS)
    assert pipeline.predict(ROWS).shape == (400,)
    assert pipeline.score(ROWS, ACTION, loss=LOSS) == pytest.approx(
        pipeline[-1].score(pipeline[0].transform(ROWS), ACTION, LOSS)
    )
    patients = np.arange(400) // 2
    params = {"loss": LOSS, "groups": patients}
    found = cross_val_score(pipeline, ROWS, ACTION, cv=GroupKFold(3), params=params)
    assert found.shape == (3,)
    assert (found <= 0).all()
    search = GridSearchCV(pipeline, {"etips__kl": [0.0, 0.1]}, cv=2)
    assert set(search.fit(ROWS, ACTION, loss=LOSS).best_params_) == {"etips__kl"}


def test_without_routing_a_pipeline_takes_the_loss_by_the_name_of_its_step():
    pipeline = make_pipeline(StandardScaler(), learner())
    assert pipeline.fit(ROWS, ACTION, etips__loss=LOSS).predict_proba(ROWS).shape == (400, 2)


@pytest.mark.usefixtures("routing")
def test_what_travels_with_the_rows_can_be_changed_and_is_cloned():
    asked = learner().set_fit_request(groups=False, loss="harm").set_score_request(loss="harm")
    again = clone(asked)
    assert again.get_metadata_routing().fit.requests["loss"] == "harm"
    assert again.get_metadata_routing().fit.requests["groups"] is False
    assert learner().get_metadata_routing().fit.requests["groups"] is True
    found = cross_val_score(again, ROWS, ACTION, cv=2, params={"harm": LOSS})
    assert np.isfinite(found).all()
    with pytest.raises(SettingError, match="none of the arrays that fit takes"):
        learner().set_fit_request(colour=True)


def test_its_tags_are_those_of_a_classifier_of_actions():
    tags = get_tags(learner())
    assert is_classifier(learner())
    assert tags.target_tags.required
    assert not tags.input_tags.sparse
    assert not tags.input_tags.allow_nan


def test_names_of_a_frame_are_kept_and_held_against_the_next():
    frame = pd.DataFrame(ROWS, columns=["age", "map", "lactate", "hr"])
    fitted = PredictiveModel(**small()).fit(frame, ACTION, LOSS)
    assert fitted.feature_names_in_.tolist() == list(frame.columns)
    for ask in (fitted.predict, fitted.predict_proba):
        with pytest.raises(DataError, match="feature names should match"):
            ask(frame[["map", "age", "lactate", "hr"]])
    assert fitted.predict_proba(frame).tolist() == fitted.predict_proba(ROWS).tolist()
    fitted.fit(ROWS, ACTION, LOSS)
    assert not hasattr(fitted, "feature_names_in_")
    assert fitted.n_features_in_ == 4
    assert not hasattr(fitted.fit(pd.DataFrame(ROWS), ACTION, LOSS), "feature_names_in_")


def test_a_setting_within_another_is_changed_by_its_path_and_its_neighbours_stay():
    own = EtIPS()
    assert own.set_params(training__policy__epochs=5, training=Training(n_folds=3)) is own
    assert (own.training.n_folds, own.training.policy.epochs) == (3, 5)
    assert own.get_params()["training__policy__epochs"] == 5
    assert "training__policy__epochs" not in own.get_params(deep=False)
    with pytest.raises(SettingError, match=r"^depth: is not a setting of EtIPS"):
        own.set_params(kl=1.0, depth=5)
    assert own.kl != 1.0
