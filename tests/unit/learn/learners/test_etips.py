"""Algorithm 1 and its relatives: what is trained, what is kept, what is refused."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from small_worlds import CLINIC, NETWORKS, small, training, ward
from torch import nn

import etips
from etips.evaluation import snips
from etips.learn import (
    EIPS,
    IPS,
    TIPS,
    BetaIPS,
    EtIPS,
    KnownPropensity,
    LoggingPolicy,
    Settings,
    SklearnModel,
)
from etips.models.encoders.gru import GRU
from etips.models.encoders.lstm import LSTM
from etips.worlds.clinic import Clinic

CLEAR = Clinic(n_contexts=30, n_features=3, n_actions=3, decisions_per_stay=3, effect=0.9)
STILL = Settings(epochs=1, batch_size=64, learning_rate=1e-9)
"""Training that leaves the networks where they start."""


class Window(nn.Module):
    """Somebody's own causal encoder: a GRU of torch, then a layer."""

    def __init__(self, n_features):
        super().__init__()
        self.read = nn.GRU(n_features, 5, batch_first=True)
        self.bend = nn.Linear(5, 4)

    def forward(self, steps):
        return self.bend(self.read(steps)[0]).tanh()


class Pointwise(nn.Module):
    """One that torch.func can batch."""

    def __init__(self, n_features):
        super().__init__()
        self.layer = nn.Linear(n_features, 4)

    def forward(self, steps):
        return self.layer(steps).tanh().cumsum(dim=1)


class Clairvoyant(nn.Module):
    """One that looks ahead."""

    def __init__(self, n_features):
        super().__init__()
        self.layer = nn.Linear(n_features, 4)

    def forward(self, steps):
        return self.layer(steps).flip(1).cumsum(dim=1).flip(1)


@pytest.fixture(scope="module")
def log():
    return CLINIC.log(80, seed=0)


def chosen_of(learner):
    return next(candidate for candidate in learner.path_ if candidate.chosen)


def test_the_path_holds_every_translation_and_nothing_else(log):
    learner = EtIPS(**small(translations=(0.2, 0.5, 1.5))).fit(log)
    assert [c.translation for c in learner.path_] == [0.2, 0.5, 1.5]
    assert {c.form for c in learner.path_} == {"translated"}
    assert sum(c.chosen for c in learner.path_) == 1
    assert all(np.isfinite(c.risk) and c.effective_size > 0 for c in learner.path_)


def test_left_out_the_method_finds_its_own_baseline(log):
    (only,) = EtIPS(**small()).fit(log).path_
    assert (only.form, only.chosen) == ("beta-IPS", True)
    assert np.isnan(only.translation)
    own, named = (make(**small()).fit(log).predict_proba(log) for make in (EtIPS, BetaIPS))
    assert own.tobytes() == named.tobytes()


def test_the_policy_takes_its_likeliest_action():
    learner = TIPS(encoder=GRU(8), training=training(8, 2), translations=(0.5, 0.8))
    learner.fit(CLEAR.log(600, seed=0))
    assert (learner.policy_.kind, learner.policy_.acts) == ("softmax", "likeliest")


def test_in_sample_the_chosen_risk_is_the_snips_of_the_policy_itself(log):
    """Algorithm 1 as printed: no folds, plain SNIPS on the training stays."""
    more = small(training=training(n_folds=1), selection="paper", translations=(0.4, 0.6))
    learner = TIPS(**more).fit(log)
    found = learner.predict_proba(log)[np.arange(log.n_decisions), log.logged_action]
    by_hand = snips(log.logged_loss, found / log.logged_propensity, log.decisions().stay)
    assert chosen_of(learner).risk == pytest.approx(by_hand.risk, abs=1e-6)
    assert chosen_of(learner).std_error == pytest.approx(by_hand.std_error, abs=1e-6)
    assert chosen_of(learner).risk == min(c.risk for c in learner.path_)
    assert learner.policy_.acts == "likeliest"  # as the paper recommends


def test_a_policy_started_from_the_propensities_begins_as_the_clinicians(log):
    stages = {"policy": STILL, "calibrate": False}
    more = small(training=training(**stages), selection="paper", support=0.0)
    learner = EtIPS(**more).fit(log)
    assert learner.predict_proba(log) == pytest.approx(learner.policy_.propensities(log), abs=1e-5)
    anywhere = EtIPS(**more, init="random").fit(log)
    assert np.abs(anywhere.predict_proba(log) - learner.predict_proba(log)).max() > 0.05


def test_a_strong_pull_keeps_the_policy_with_the_propensities(log):
    more = small(training=training(6, calibrate=False), selection="paper", support=0.0)
    gaps = []
    for kl in (0.0, 100.0):
        learner = EtIPS(**more, kl=kl, translations=(0.9,)).fit(log)
        gap = np.abs(learner.predict_proba(log) - learner.policy_.propensities(log))
        gaps.append(gap.mean())
    assert gaps[1] < 0.5 * gaps[0]


def test_the_share_of_clipped_propensities_is_kept(log):
    learner = TIPS(**small(clip=0.5)).fit(log)
    assert learner.clipped_share_ == pytest.approx((log.logged_propensity < 0.5).mean())
    assert TIPS(**small(clip=1e-6)).fit(log).clipped_share_ == 0


def test_tips_finds_a_policy_better_than_the_clinicians():
    """True risk 0.47 for the clinicians, 0.37 for the best policy."""
    train, test = CLEAR.log(600, seed=0), CLEAR.log(200, seed=1)
    learner = TIPS(encoder=GRU(8), training=training(8, 2), translations=(0.5, 0.8)).fit(train)
    clinicians = test.true_risk(LoggingPolicy().fit(test).predict_proba(test))
    assert test.true_risk(learner.predict_proba(test)) < clinicians - 0.05


def test_plain_ips_flees_the_log_and_its_matching_factor_says_so():
    """Clinicians who always do the same for the same patient: what they never do costs nothing."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 3))
    action = (features[:, 0] > 0).astype(int) + (features[:, 0] > 0.7)
    log = etips.from_arrays(features, action, np.ones(300), propensity=np.ones(300))
    more = {"encoder": GRU(8), "training": training(20, 2)}
    for fleeing in (EIPS(**more).fit(log), IPS(**more).fit(log)):
        assert chosen_of(fleeing).matching_factor < 0.5
    staying = TIPS(**more, translations=(1.5,), selection="paper").fit(log)
    assert chosen_of(staying).matching_factor > 0.7


def test_the_relatives_are_settings_of_one_class():
    assert isinstance(TIPS().propensity, KnownPropensity)
    assert TIPS().translations is BetaIPS().translations is None
    plain = EIPS()
    assert (plain.translations, plain.init, plain.selection) == ((0.0,), "random", "paper")
    assert isinstance(IPS().propensity, KnownPropensity)
    assert IPS(seed=3).seed == 3
    with pytest.raises(TypeError):
        TIPS(nonsense=1)


def test_known_propensities_are_used_and_not_estimated(log):
    estimated, known = EtIPS(**small()).fit(log), TIPS(**small()).fit(log)
    assert [c.risk for c in estimated.path_] != [c.risk for c in known.path_]
    explicit = EtIPS(**small(), propensity=KnownPropensity()).fit(log)
    assert [c.risk for c in explicit.path_] == [c.risk for c in known.path_]


def test_a_scikit_learn_classifier_serves_as_the_propensity(log, tmp_path):
    model = SklearnModel(LogisticRegression(max_iter=500))
    learner = EtIPS(**small(), propensity=model).fit(log)
    assert not hasattr(model, "classifier_")
    assert not hasattr(model.classifier, "coef_")
    ours = EtIPS(**small()).fit(log)
    assert [c.risk for c in learner.path_] != [c.risk for c in ours.path_]
    learner.save(tmp_path / "policy")
    loaded = etips.load(tmp_path / "policy")
    assert (loaded.predict_proba(log) == learner.predict_proba(log)).all()


@pytest.mark.parametrize("encoder", [Window, Pointwise, Window(3), Pointwise(3)])
def test_an_encoder_of_ones_own_trains_saves_and_loads(encoder, log, tmp_path):
    learner = EtIPS(**small(encoder=encoder, selection="paper")).fit(log)
    found = learner.predict_proba(log)
    assert found.shape == (log.n_decisions, 3)
    learner.save(tmp_path / "policy")
    loaded = etips.load(tmp_path / "policy", encoder=encoder)
    assert loaded.predict_proba(log).tobytes() == found.tobytes()
    with pytest.raises(etips.SettingError, match=r"^encoder: is needed"):
        etips.load(tmp_path / "policy")
    with pytest.raises(etips.FileError, match="does not hold what its manifest says"):
        etips.load(tmp_path / "policy", encoder=nn.Identity)


@pytest.mark.parametrize("name", ["DirectMethod", "DoublyRobust", "PredictiveModel"])
def test_every_network_learner_takes_an_encoder_of_ones_own(name, log):
    found = NETWORKS[name](encoder=Window).fit(log).predict_proba(log)
    assert found.sum(axis=1) == pytest.approx(1)


def test_an_instance_given_as_encoder_is_copied_and_never_changed(log):
    module = Window(3)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    EtIPS(**small(encoder=module)).fit(log)
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
        assert not value.requires_grad
    assert all(p.grad is None for p in module.parameters())


def test_an_encoder_that_looks_ahead_is_refused(log):
    with pytest.raises(etips.SettingError, match=r"^encoder: must be causal"):
        EtIPS(**small(encoder=Clairvoyant)).fit(log)


def test_an_lstm_reads_as_well_as_a_gru(log, tmp_path):
    learner = EtIPS(**small(encoder=LSTM(5), selection="paper")).fit(log)
    learner.save(tmp_path / "policy")
    loaded = etips.load(tmp_path / "policy")
    assert loaded.predict_proba(log).tobytes() == learner.predict_proba(log).tobytes()


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"translations": ()}, "translations: must hold at least one, all of them finite."),
        ({"translations": (0.5, np.nan)}, "translations: must hold at least one, all of them fin"),
        ({"translations": 0.5}, "translations: must hold at least one, all of them finite. Give a"),
        ({"translations": "0.5"}, "translations: must be a number."),
        ({"translations": [[0.1, 0.2]]}, "translations: must be a number."),
        ({"init": "somewhere"}, "init: must be propensity or random."),
        ({"selection": "lucky"}, "selection: must be held-out or paper."),
        ({"kl": -0.1}, "kl: must be finite and not negative."),
        ({"kl": "0.1"}, "kl: must be a number."),
        ({"kl": np.nan}, "kl: must be finite and not negative."),
        ({"clip": 0.0}, "clip: must be in (0, 1]."),
        ({"clip": "a"}, "clip: must be a number."),
        ({"clip": np.nan}, "clip: must be in (0, 1]."),
        ({"support": 1.0}, "support: must be in [0, 1)."),
        ({"support": [0.1]}, "support: must be a number."),
        ({"support": None}, "support: must be a number."),
        ({"kl": None}, "kl: must be a number."),
        ({"seed": 1.5}, "seed: must be a whole number."),
        ({"seed": None}, "seed: must be a whole number."),
        ({"propensity": "logistic"}, "propensity: must have fit and predict_proba. Give"),
        ({"propensity": SklearnModel}, "propensity: must have fit and predict_proba. Give"),
        ({"propensity": LogisticRegression()}, "propensity: must take stays; a classifier takes"),
        ({"support": np.nan}, "support: must be in [0, 1)."),
        ({"encoder": "grue"}, "encoder: must be GRU(...), LSTM(...), "),
        ({"encoder": GRU}, "encoder: must be GRU(...), LSTM(...), "),
        ({"encoder": nn.Linear(99, 4)}, "encoder: fails on an input of shape (3, 6, "),
        ({"encoder": nn.Linear}, "encoder: must be built from the number of features alone: "),
        ({"encoder": lambda n: n}, "encoder: must build a torch module."),
        ({"training": None}, "training: must be Training(...)."),
        ({"training": training(n_folds="3")}, "n_folds: must be a whole number."),
        ({"training": training(policy={})}, "policy: must be Settings(...)."),
        ({"training": training(calibrate="no")}, "calibrate: must be true or false."),
        ({"training": training(device=0)}, "device: must be auto, cpu or cuda."),
        ({"training": training(n_folds=0)}, "n_folds: must be at least 1."),
        ({"training": training(device="banana")}, "device: must be auto, cpu or cuda."),
        ({"training": training(device="meta")}, "device: must be auto, cpu or cuda."),
    ],
)
def test_a_setting_outside_its_limits_is_refused_before_training(settings, line, log):
    told = []
    with pytest.raises(etips.SettingError) as refusal:
        EtIPS(**{**small(), **settings}).fit(log, report=told.append)
    assert str(refusal.value).startswith(line)
    assert told == []


def test_a_propensity_of_a_millionth_does_no_harm(log):
    """S8: weights are differences of logs, and the clip holds them."""
    tiny = np.where(np.arange(log.n_steps) % 7 == 0, 1e-80, log.propensity)
    data = etips.Trajectories(
        sequence=log.sequence,
        offsets=log.offsets,
        schema=log.schema,
        action=log.action,
        loss=log.loss,
        propensity=tiny,
    )
    found = TIPS(**small(clip=1e-3)).fit(data)
    assert np.isfinite(found.predict_proba(data)).all()
    assert found.clipped_share_ == pytest.approx((tiny < 1e-3).mean())


def test_stays_without_a_decision_are_no_obstacle():
    data = ward(lag=1)
    lengths = np.diff(data.offsets)
    assert (lengths == 1).any()
    assert EtIPS(**small()).fit(data).predict_proba(data).shape == (data.n_decisions, 3)
