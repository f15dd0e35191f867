"""POEM and Norm-POEM against what they must equal."""

import itertools
import math

import numpy as np
import pytest
import torch
from small_worlds import CLEAR, gain_in_a_clear_world, training, ward
from torch.nn import functional
from trial_worlds import agreement, two_arms

import etips
from etips.evaluation.risk import ips, snips
from etips.learn import POEM, NormPOEM
from etips.learn.learners.poem import RIDGE
from etips.models.encoders.gru import GRU

FREE = {"cap": math.inf, "penalty": 0.0}


def ips_by_hand(log, ceiling):
    """The least inverse propensity risk of a softmax of a line, by plain gradient descent."""
    rows = log.rows.double()
    action, chance = torch.from_numpy(log.action), torch.from_numpy(log.chance)
    loss = torch.from_numpy(log.loss) - ceiling
    start = np.concatenate([log.propensity.base, log.propensity.weight[0]])
    place = torch.from_numpy(start).requires_grad_()
    adam = torch.optim.Adam([place], lr=0.05)
    for _ in range(1200):
        adam.zero_grad()
        policy = functional.softmax(rows @ place[1:] + place[0], 1)
        taken = policy[torch.arange(len(action)), action]
        value = (taken / chance * loss).mean() + 0.5 * RIDGE * place[1:].square().sum()
        value.backward()
        adam.step()
    return policy.detach().numpy()


def test_without_clipping_and_penalty_it_equals_ips():
    rows, arm, loss, _ = two_arms(300, 0)
    chance = np.full(300, 0.5)
    learner = POEM(**FREE, propensities="known").fit(rows, arm, loss, propensity=chance)
    log = POEM(propensities="known")._read(etips.from_arrays(rows, arm, loss, propensity=chance))
    wanted, found = ips_by_hand(log, 1.0), learner.predict_proba(rows)
    assert np.abs(found - wanted).max() < 0.02
    ours, theirs = (
        ips(loss - 1, own[np.arange(300), arm] / 0.5, np.arange(300)).risk
        for own in (found, wanted)
    )
    assert ours == pytest.approx(theirs, abs=0.001)


def tiny():
    """Two kinds of patients, two arms, known propensities; four numbers are all there is."""
    kind = np.repeat([0, 0, 1, 1], [30, 10, 15, 25])
    arm = np.repeat([0, 1, 0, 1], [30, 10, 15, 25])
    loss = np.concatenate(
        [np.arange(m) % 10 < 10 * r for m, r in ((30, 0.4), (10, 0.2), (15, 0.2), (25, 0.6))]
    ).astype(float)
    chance = np.array([0.75, 0.25, 0.375, 0.625])[2 * kind + arm]
    return kind[:, None].astype(float), arm, loss, chance


def test_norm_poem_equals_the_optimum_of_snips_solved_exactly():
    """The self-normalised risk of a table of chances is least at a corner: try all of them."""
    rows, arm, loss, chance = tiny()
    kind = rows[:, 0].astype(int)
    risks = {}
    for corner in itertools.product((0, 1), repeat=2):
        weight = (arm == np.array(corner)[kind]) / chance
        risks[corner] = weight @ loss / weight.sum()
    best = min(risks, key=risks.get)
    learner = NormPOEM(**FREE, propensities="known").fit(rows, arm, loss, propensity=chance)
    found = learner.predict_proba(rows)
    weight = found[np.arange(80), arm] / chance
    own = snips(loss, weight, np.arange(80)).risk
    assert own == pytest.approx(risks[best], abs=0.01)
    assert (learner.predict(np.array([[0.0], [1.0]])) == best).all()
    inner = [
        w @ loss / w.sum()
        for w in (
            (np.array([[1 - p, p], [1 - q, q]])[kind, arm] / chance)
            for p in np.linspace(0, 1, 21)
            for q in np.linspace(0, 1, 21)
        )
    ]
    assert min(inner) == pytest.approx(risks[best])


@pytest.mark.parametrize("learner", [POEM, NormPOEM])
def test_in_a_randomised_trial_they_find_the_better_arm(learner):
    assert agreement(learner(), two_arms, n=2000) > 0.93


def factor(learner):
    """Matching factor on the log that a learner learned from: 100 patients, three arms."""
    rng = np.random.default_rng(0)
    rows, arm = rng.normal(size=(100, 15)), rng.integers(0, 3, 100)
    loss, chance = rng.random(100), np.full(100, 1 / 3)
    learner.fit(rows, arm, loss, propensity=chance)
    return float((3 * learner.predict_proba(rows)[np.arange(100), arm]).mean())


def test_poem_flees_losses_above_zero_and_norm_poem_does_not_care():
    """The failure that the self-normalised risk was made for."""
    told = {**FREE, "propensities": "known"}
    assert factor(POEM(ceiling=0.0, **told)) < 0.5
    assert factor(POEM(ceiling=1.0, **told)) > 1.5
    norm = [factor(NormPOEM(ceiling=c, **told)) for c in (0.0, 1.0)]
    assert norm[0] == pytest.approx(norm[1], abs=0.02)


def test_a_penalty_keeps_the_weights_of_a_small_log_in_check():
    rows, arm, loss, _ = two_arms(60, 0)
    spread = []
    for penalty in (0.0, 20.0):
        learner = POEM(penalty=penalty, cap=math.inf).fit(rows, arm, loss)
        found = learner.predict_proba(rows)[np.arange(60), arm] * (loss - 1)
        spread.append(found.std())
    assert spread[1] < 0.8 * spread[0]


@pytest.mark.parametrize("learner", [POEM, NormPOEM])
def test_any_encoder_of_ours_will_do(learner):
    own = {"encoder": GRU(8, embed=16), "training": training(12), "propensities": "known"}
    assert gain_in_a_clear_world(learner(**own, seed=0)) > 0.01
    assert CLEAR.n_actions == 3


@pytest.mark.parametrize(
    "settings",
    [
        {"penalty": -1.0},
        {"penalty": math.inf},
        {"cap": 0.0},
        {"cap": math.nan},
        {"ceiling": math.inf},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    (named,) = settings
    with pytest.raises(etips.SettingError, match=rf"^{named}: must"):
        POEM(**settings).fit(ward())
