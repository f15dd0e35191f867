"""H5: scikit-learn's own estimator checks, on 2-D arrays; what does not apply is listed with why.

A learner has two targets, action and loss. The checks have one: it is taken for the action, and the
loss of every row is 0, so that the best policy is to do as was done. docs/method/estimators.md
holds the same list for users.
"""

import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator
from small_worlds import training

import etips
from etips.learn import DirectMethod, DoublyRobust, EtIPS, MostFrequent, PredictiveModel
from etips.learn import RandomPolicy as Random
from etips.models.encoders.gru import GRU

DOCUMENT = Path(__file__).parents[2] / "docs" / "method" / "estimators.md"


def adapt(learner):
    """The same learner with one target, as a classifier of labels of any kind."""

    class Adapted(learner):
        def fit(self, X, y):  # noqa: N803  # scikit-learn's names
            if y is None:
                return learner.fit(self, X)
            y = np.asarray(y)
            kept = y.dtype.kind == "f" and not np.all(np.isfinite(y) & (y == np.round(y)))
            self.labels_, code = np.unique(y, return_inverse=True)
            action = y if kept else code  # what is no label is ours to refuse
            return learner.fit(self, X, action, np.zeros(len(self.labels_[code])))

        def predict(self, X):  # noqa: N803
            return self.labels_[learner.predict(self, X)]

        def score(self, X, y):  # noqa: N803
            code = np.searchsorted(self.labels_, y)
            return learner.score(self, X, code, np.zeros(len(code)))

        @property
        def classes_(self):
            return self.labels_

    Adapted.__name__ = Adapted.__qualname__ = learner.__name__
    return Adapted


SMALL = {"encoder": GRU(6), "training": training(epochs=6)}

ESTIMATORS = {
    "EtIPS": lambda: adapt(EtIPS)(**SMALL, translations=(0.5,)),
    "DirectMethod": lambda: adapt(DirectMethod)(**SMALL),
    "DoublyRobust": lambda: adapt(DoublyRobust)(**SMALL),
    "PredictiveModel": lambda: adapt(PredictiveModel)(**SMALL),
    "RandomPolicy": lambda: adapt(Random)(),
    "MostFrequent": lambda: adapt(MostFrequent)(),
}

NEVER_RUN = {
    "check_estimators_pickle": "nothing in etips is pickled; save and load keep a policy",
    "check_array_api_input": "arrays are NumPy's",
}

WORDS = "it is refused, in words of our own"
EVERYWHERE = {
    "check_estimators_unfitted": "not fitted is a SettingError, scikit-learn not being required",
    "check_n_features_in_after_fitting": WORDS,
    "check_dtype_object": "it is refused as a DataError, which is a ValueError and no TypeError",
    "check_estimators_nan_inf": WORDS,
    "check_estimators_empty_data_messages": "static features may be all there is",
    "check_classifiers_regression_target": WORDS,
    "check_supervised_y_2d": "actions of shape (n, 1) are those of one step, and need no warning",
    "check_requires_y_none": WORDS,
}
NETWORK = {
    "check_parameters_default_constructible": "defaults are objects, not names of objects",
    "check_fit2d_1sample": "it is refused, in words of stays and patients",
}
BLIND = "it looks at no feature"
DRAWS = {
    "check_methods_sample_order_invariance": "it draws",
    "check_methods_subset_invariance": "it draws",
}
EXPECTED = {
    "EtIPS": EVERYWHERE | NETWORK,
    "DirectMethod": EVERYWHERE | NETWORK,
    "DoublyRobust": EVERYWHERE | NETWORK,
    "PredictiveModel": EVERYWHERE | NETWORK | DRAWS | {"check_classifiers_train": "it draws"},
    "RandomPolicy": EVERYWHERE | DRAWS | {"check_classifiers_train": BLIND},
    "MostFrequent": EVERYWHERE | {"check_classifiers_train": BLIND},
}
"""What fails of each learner, and why it should."""


def name_of(check):
    return getattr(check, "func", check).__name__


def checks(name):
    """Every check of a learner that may run; some come several times with other arguments."""
    return [check for check in every_check(name) if name_of(check) not in NEVER_RUN]


def every_check(name):
    with warnings.catch_warnings():  # inheriting from its base class is not what makes a learner
        warnings.filterwarnings("ignore", "Estimator .* does not inherit")
        return [check for _, check in estimator_checks_generator(ESTIMATORS[name]())]


CASES = [
    pytest.param(name, number, id=f"{name}-{name_of(check)}-{number}")
    for name in ESTIMATORS
    for number, check in enumerate(checks(name))
]


@pytest.mark.filterwarnings("ignore")  # the checks try what earns warnings
@pytest.mark.parametrize(("name", "number"), CASES)
def test_scikit_learns_check_passes_unless_listed(name, number):
    check = checks(name)[number]
    if name_of(check) not in EXPECTED[name]:
        check(ESTIMATORS[name]())
        return
    with pytest.raises(Exception) as failure:  # noqa: PT011  # of any kind: that is what is shown
        check(ESTIMATORS[name]())
    assert not isinstance(failure.value, pytest.skip.Exception)


def test_nothing_is_listed_that_is_not_checked():
    for name, listed in EXPECTED.items():
        assert set(listed) <= {name_of(check) for check in checks(name)}
    every = {name_of(check) for check in every_check("EtIPS")}
    assert set(NEVER_RUN) <= every
    assert len(every) >= 40


def test_the_document_lists_the_same():
    text = DOCUMENT.read_text()
    listed = {check for each in EXPECTED.values() for check in each} | set(NEVER_RUN)
    named = {word.strip("`") for word in text.split() if word.startswith("`check_")}
    assert named == listed


@cache
def rows():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 3))
    action = np.tile([0, 1, 2], 20)
    return features, action, (rng.random(60) < 0.5).astype(float)


LEARNERS = [EtIPS, DirectMethod, DoublyRobust, PredictiveModel, Random, MostFrequent]
ours = pytest.mark.parametrize("learner", LEARNERS)


def made(learner):
    return learner() if learner in (Random, MostFrequent) else learner(**SMALL)


@ours
def test_a_clone_has_the_same_settings_and_learns_the_same(learner):
    first = made(learner).fit(*rows())
    second = clone(first)
    assert not hasattr(second, "n_features_in_")
    assert second.get_params(deep=False).keys() == first.get_params(deep=False).keys()
    assert (second.fit(*rows()).predict_proba(rows()[0]) == first.predict_proba(rows()[0])).all()


@ours
def test_a_fitted_learner_knows_its_features_and_its_actions(learner):
    found = made(learner)
    for name in ("n_features_in_", "classes_"):
        with pytest.raises(AttributeError, match="is not fitted"):
            getattr(found, name)
    found.fit(*rows())
    assert found.n_features_in_ == 3
    assert found.classes_.tolist() == [0, 1, 2]


def test_settings_within_settings_can_be_read_and_changed():
    learner = EtIPS()
    assert learner.get_params()["training__policy__epochs"] == learner.training.policy.epochs
    assert "training__policy__epochs" not in learner.get_params(deep=False)
    before = learner.training
    changed = {"training__policy__epochs": 3, "encoder__hidden": 5, "kl": 0.5}
    assert learner.set_params(**changed) is learner
    found = (learner.training.policy.epochs, learner.encoder.hidden, learner.kl)
    assert found == (3, 5, 0.5)
    assert before.policy.epochs != 3
    learner.set_params(training__n_folds=2, training=before)
    assert (learner.training.n_folds, learner.training.policy) == (2, before.policy)


@pytest.mark.parametrize("name", ["colour", "training__colour", "seed__colour", "policy_"])
def test_a_setting_that_is_not_there_cannot_be_set(name):
    with pytest.raises(etips.SettingError, match=f"^{name}: is not a setting of EtIPS"):
        EtIPS().set_params(**{name: 1})


@ours
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_features_that_are_missing_or_infinite_are_refused(learner, value):
    features, action, loss = rows()
    wrong = features.copy()
    wrong[7, 1] = value
    rule = "must be finite; 1 of 60 rows fail, first at row 7"
    with pytest.raises(etips.DataError, match=rule):
        made(learner).fit(wrong, action, loss)
    with pytest.raises(etips.DataError, match=rule):
        made(learner).fit(*rows()).predict(wrong)


@ours
def test_another_number_of_features_is_refused_where_features_are_read(learner):
    found = made(learner).fit(*rows())
    if learner in (Random, MostFrequent):
        assert found.predict(rows()[0][:, :2]).shape == (60,)
        return
    with pytest.raises(etips.DataError, match="data, sequence"):
        found.predict(rows()[0][:, :2])
