"""A learner of a user's own among the candidates: stacked, judged beside, saved or not."""

import numpy as np
import pytest

import etips
from etips.data.history_rows import last_step
from etips.errors import DataError, SettingError
from etips.learn import Training

QUICK = Training(n_folds=2, device="cpu")


def log(n=600, seed=0):
    """The better of two actions follows a wave that no straight line finds."""
    rng = np.random.default_rng(seed)
    x, action = rng.uniform(-1, 1, (n, 1)), rng.integers(0, 2, n)
    loss = (action != (np.sin(9 * x[:, 0]) > 0)) + 0.3 * rng.normal(size=n)
    return etips.from_arrays(x, action, loss, propensity=np.full(n, 0.5))


class Wave:
    """Knows the wave; says which action is better."""

    def fit(self, data):
        self.n_ = data.n_stays
        return self

    def predict_proba(self, data):
        better = np.sin(9 * last_step(data)[:, 0]) > 0
        return np.stack([0.9 - 0.8 * better, 0.1 + 0.8 * better], axis=1)


class WaveOfLoss(Wave):
    """Says what either leads to."""

    def predict_loss(self, data):
        return 1 - self.predict_proba(data)


def fit(*candidates, data=None):
    own = etips.SuperLearner(candidates=candidates, training=QUICK, seed=0)
    return own.fit(log() if data is None else data)


def test_one_that_predicts_losses_is_stacked_with_the_others():
    given = WaveOfLoss()
    learner = fit("regression", given)
    tried = {own.name: own for own in learner.choice_.tried}
    assert tried["WaveOfLoss"].tier == "model"
    assert tried["WaveOfLoss"].weight > 0.9
    assert tried["WaveOfLoss"].kept
    asked = log(seed=1)
    assert (learner.predict(asked) == given.predict_proba(asked).argmax(axis=1)).mean() > 0.97
    assert not hasattr(given, "n_")  # copies learn


def test_any_other_is_judged_beside_the_stack_and_kept_where_it_is_best():
    learner = fit("regression", Wave())
    assert learner.choice_.kept.name == "Wave"
    assert learner.choice_.kept.tier == "policy"
    assert "Wave" in learner.choice_.seconds
    asked = log(seed=1)
    assert (learner.predict(asked) == Wave().predict_proba(asked).argmax(axis=1)).all()


def test_a_learner_of_ours_can_be_one_and_objects_alone_will_do():
    learner = fit(etips.MostFrequent(), etips.QLearning())
    names = [own.name for own in learner.choice_.tried]
    assert {"MostFrequent", "QLearning", "regression"} <= set(names)


def test_what_no_file_can_hold_is_refused_in_one_line(tmp_path):
    learner = fit("regression", Wave())
    with pytest.raises(SettingError, match=r"^policy: holds a model of your own, which .*\.$"):
        learner.save(tmp_path / "policy")
    assert list(tmp_path.iterdir()) == []
    assert learner.fitted_policy().imitation().predict_proba(log(seed=2)).shape == (600, 2)


@pytest.mark.parametrize("wrong", [(), ("magic",), (Wave,), (object(),), ("regression", 3)])
def test_what_is_neither_a_name_nor_a_learner_is_refused(wrong):
    with pytest.raises(SettingError, match=r"^candidates: must be some of regression, forest"):
        fit(*wrong)


def test_answers_of_another_shape_or_not_finite_are_refused():
    class Odd(Wave):
        def predict_loss(self, data):
            return np.full((data.n_decisions, 2), np.nan)

    with pytest.raises(DataError, match=r"^candidates, Odd: must give one finite number"):
        fit("regression", Odd())
