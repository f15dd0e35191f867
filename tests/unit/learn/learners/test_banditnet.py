"""BanditNet: the code of TIPS with defaults of its own."""

import numpy as np
import pytest
from small_worlds import CLEAR, small, training
from small_worlds import gain_in_a_clear_world as gain

import etips
from etips.learn import TIPS, BanditNet, EtIPS, KnownPropensity
from etips.models.encoders.gru import GRU


def test_its_defaults_are_those_of_the_article():
    made = BanditNet()
    assert type(made) is EtIPS
    assert isinstance(made.propensity, KnownPropensity)
    assert (made.init, made.selection, made.support, made.kl) == ("random", "paper", 0.0, 0.0)
    assert 0.9 in made.translations
    assert BanditNet(kl=0.1).kl == 0.1


def test_it_is_tips_told_the_same():
    data = CLEAR.log(80, seed=0)
    told = {
        "translations": (0.8,),
        "init": "random",
        "selection": "paper",
        "support": 0.0,
        "kl": 0.0,
    }
    ours = BanditNet(**small(translations=(0.8,))).fit(data)
    theirs = TIPS(**small(**told)).fit(data)
    assert (ours.predict_proba(data) == theirs.predict_proba(data)).all()


def test_it_wins_with_a_multiplier_and_flees_the_log_without():
    shape = {"encoder": GRU(8, embed=16), "training": training(15), "seed": 0}
    data, factors = CLEAR.log(500, seed=0), []
    won = BanditNet(translations=(0.85,), **shape)
    assert gain(won) > 0.01
    for learner in (won, BanditNet(translations=(0.0,), **shape).fit(data)):
        taken = learner.predict_proba(data)[np.arange(data.n_decisions), data.logged_action]
        factors.append((taken / data.logged_propensity).mean())
    assert factors[1] < 0.97 < factors[0]


def test_it_needs_propensities_in_the_data():
    rows, arm = np.zeros((20, 1)), np.tile([0, 1], 10)
    with pytest.raises(etips.DataError, match=r"^propensity: is not in the data"):
        BanditNet().fit(rows, arm, arm.astype(float))
