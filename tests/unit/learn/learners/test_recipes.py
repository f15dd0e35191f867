"""Learners by name: settings reach where they belong, and what makes no sense is refused."""

import numpy as np
import pytest
from small_worlds import ward

import etips
from etips.errors import SettingError
from etips.files.toml import format_toml
from etips.learn import DirectMethod, DoublyRobust, EtIPS, KnownPropensity, PredictiveModel
from etips.learn.fitting.stages import POLICY, PROPENSITY, Training
from etips.learn.learners.catalogue import METHODS
from etips.learn.learners.recipes import Recipe, make_learner
from etips.models.encoders.gru import GRU
from etips.models.encoders.lstm import LSTM
from etips.models.encoders.transformer import CausalTransformer

TINY = {"hidden": 4, "epochs": 1, "n_folds": 2, "batch_size": 64}
SIMPLE = ("random", "most-frequent", "q-learning", "poem", "norm-poem", "ai-clinician")


def tiny(method):
    if method in SIMPLE:
        return {}
    if method in ("owl", "rwl"):
        return {"ridge": 0.1}
    return {**TINY, "translations": [0.3, 0.7]} if method in ("etips", "tips") else TINY


def test_the_transformer_can_be_chosen_by_name():
    learner = make_learner("etips", {"encoder": "transformer", "hidden": 8, "n_layers": 1})
    assert learner.encoder == CausalTransformer(8, n_layers=1)
    with pytest.raises(SettingError, match=r"^embed: is not a setting of the encoder transformer"):
        make_learner("etips", {"encoder": "transformer", "embed": 8})


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns_answers_and_saves(method, tmp_path):
    learner = make_learner(method, tiny(method), device="cpu", seed=3)
    assert learner.fit(ward(), report=lambda _: None, run=None) is learner
    found = learner.predict_proba(ward())
    assert found.shape == (ward().n_decisions, 3)
    assert learner.predict(ward()).shape == (ward().n_decisions,)
    assert not learner.abstains(ward()).all()
    learner.save(tmp_path / "policy")
    assert etips.load(tmp_path / "policy").predict_proba(ward()) == pytest.approx(found)


def test_settings_reach_the_learner():
    given = {"translations": [0.5, 2], "support": 0.2, "kl": 0, "clip": 0.05, "init": "random"}
    made = make_learner("etips", {**given, "selection": "paper"}, seed=9)
    assert isinstance(made, EtIPS)
    assert made.translations == (0.5, 2)
    assert (made.support, made.kl, made.clip, made.init) == (0.2, 0, 0.05, "random")
    assert (made.selection, made.seed) == ("paper", 9)


def test_settings_reach_the_networks():
    shape = {"hidden": 12, "embed": 5, "encoder": "lstm", "n_folds": 3}
    more = {"earlier_actions": True, "calibrate": False}
    made = make_learner("predictive", {**shape, **more}, device="cpu")
    assert isinstance(made, PredictiveModel)
    assert made.encoder == LSTM(12, embed=5)
    training = made.training
    assert (training.n_folds, training.device) == (3, "cpu")
    assert (training.earlier_actions, training.calibrate) == (True, False)


def test_a_setting_of_one_stage_goes_over_that_of_all():
    made = make_learner("direct", {"policy.epochs": 2, "epochs": 7, "outcome.dropout": 0.5})
    assert isinstance(made, DirectMethod)
    stages = made.training.propensity, made.training.outcome, made.training.policy
    assert [stage.epochs for stage in stages] == [7, 7, 2]
    assert [stage.dropout for stage in stages] == [PROPENSITY.dropout, 0.5, POLICY.dropout]


def test_without_settings_a_learner_is_as_python_makes_it():
    made, own = make_learner("doubly-robust", {}), DoublyRobust()
    assert isinstance(made, DoublyRobust)
    assert (made.encoder, made.training, made.kl) == (
        own.encoder,
        Training(),
        own.kl,
    )


def test_known_propensities_belong_to_tips_and_ips():
    for method in ("tips", "ips"):
        assert isinstance(make_learner(method, {}).propensity, KnownPropensity)
    for method in ("etips", "eips"):
        assert make_learner(method, {}).propensity is None


@pytest.mark.parametrize(
    ("method", "settings", "words"),
    [
        ("magic", {}, "^method: must be one of auto, etips"),
        ("etips", {"colour": 1}, "^colour: is not a setting of etips"),
        ("etips", {"seed": 1}, "^seed: is not a setting of etips"),
        ("etips", {"policy.hidden": 1}, "^policy.hidden: is not a setting"),
        ("etips", {"device.epochs": 1}, "^device.epochs: is not a setting"),
        ("etips", {"policy.seed": 1}, "^policy.seed: is not a setting"),
        ("direct", {"kl": 0.1}, "^kl: is not a setting of direct"),
        ("predictive", {"support": 0.1}, "^support: is not a setting of predictive"),
        ("random", {"hidden": 8}, "^hidden: is no setting: random has no settings"),
        ("etips", {"hidden": 8.0}, "^hidden: must be a whole number"),
        ("etips", {"hidden": True}, "^hidden: must be a whole number"),
        ("etips", {"hidden": 0}, "^hidden: must be at least 1"),
        ("etips", {"embed": -1}, "^embed: must be at least 0"),
        ("etips", {"precision": "half"}, "^precision: must be float32 or bfloat16"),
        ("etips", {"policy.precision": "x"}, "^policy.precision: must be float32 or bfloat16"),
        ("etips", {"support": "high"}, "^support: must be a number"),
        ("etips", {"support": True}, "^support: must be a number"),
        ("etips", {"earlier_actions": 1}, "^earlier_actions: must be true or false"),
        ("etips", {"translations": 0.5}, "^translations: must be a list of numbers"),
        ("etips", {"translations": ["a"]}, "^translations: must be a list of numbers"),
        ("etips", {"encoder": "rnn"}, "^encoder: must be gru or lstm"),
        ("etips", {"init": "zero"}, "^init: must be propensity or random"),
        ("etips", {"selection": "x"}, "^selection: must be held-out or paper"),
        ("etips", {"policy.epochs": 0}, "^epochs: must be at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused(method, settings, words):
    with pytest.raises(SettingError, match=words):
        make_learner(method, settings)


def test_a_recipe_reads_back_from_its_text():
    settings = {"hidden": 8, "policy.epochs": 3, "translations": [0.1, 0.2], "init": "random"}
    recipe = Recipe("etips", settings, 4)
    assert Recipe.from_toml(format_toml(recipe.to_document())) == recipe
    assert Recipe.from_toml(format_toml(Recipe("random").to_document())) == Recipe("random")


def test_a_recipe_by_hand_may_leave_out_anything_and_use_tables_or_dots():
    assert Recipe.from_toml("") == Recipe()
    text = 'method = "direct"\n[settings]\nhidden = 8\npolicy.epochs = 3\n'
    table = 'method = "direct"\n[settings]\nhidden = 8\n[settings.policy]\nepochs = 3\n'
    wanted = Recipe("direct", {"hidden": 8, "policy.epochs": 3})
    assert Recipe.from_toml(text) == Recipe.from_toml(table) == wanted


def test_a_recipe_makes_the_learner_it_names():
    made = Recipe("direct", {"hidden": 8, "embed": 0}, seed=2).make(device="cpu")
    assert isinstance(made, DirectMethod)
    assert (made.encoder, made.seed, made.training.device) == (GRU(8), 2, "cpu")


def test_a_recipe_does_not_follow_the_mapping_it_was_made_from():
    settings = {"hidden": 8}
    recipe = Recipe("direct", settings)
    settings["hidden"] = 9
    assert recipe.settings == {"hidden": 8}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("method = 3", "^method: must be a text"),
        ("colour = 3", "^colour: is not a key of a recipe"),
        ("settings = 3", "^settings: must be a table"),
        ('seed = "x"', "^seed: must be a whole number"),
        ("seed = true", "^seed: must be a whole number"),
        ("settings.policy.epochs.more = 3", "^policy.epochs: must be a whole number"),
        ("seed = ", "^TOML: is not valid"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(text, words):
    with pytest.raises(SettingError, match=words):
        Recipe.from_toml(text)


def test_random_draws_by_its_seed():
    one, same, other = (make_learner("random", {}, seed=s).fit(ward()) for s in (1, 1, 2))
    assert (one.predict(ward()) == same.predict(ward())).all()
    assert np.unique(one.predict(ward())).size == 3
    assert (one.predict(ward()) != other.predict(ward())).any()
