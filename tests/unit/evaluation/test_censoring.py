import numpy as np
import pytest
from missing_worlds import make_missing

from etips.errors import DataError
from etips.evaluation import Log, logged_risk, snips, view
from etips.evaluation.censoring import LossModel, complete_losses, model_losses


def test_a_stand_in_is_the_model_corrected_by_what_was_observed():
    model = LossModel(
        observed=np.array([True, True, False]),
        loss=np.array([1.0, 0.0, 0.0]),
        chance=np.array([0.25, 0.5, 0.5]),
        predicted=np.array([0.5, 0.5, 0.3]),
    )
    assert model.stand_in.tolist() == [0.5 + 4 * 0.5, 0.5 - 2 * 0.5, 0.3]


def test_weighting_finds_the_risks_that_dropping_misses():
    world = make_missing(6_000, seed=1)
    log = Log.of(world.data, propensities=world.propensities)
    assert log.n_decisions == 6_000
    policy = view(log, world.policy)
    risk, clinicians = snips(log.loss, policy.weight, log.clusters), world.risk - world.gain
    logged = logged_risk(log.loss, log.clusters)
    assert risk.low < world.risk < risk.high
    assert logged.low < clinicians < logged.high
    seen = ~np.isnan(world.data.logged_loss)
    own = world.data.logged_loss[seen]
    dropped = logged_risk(own, log.cluster[seen])
    assert not dropped.low < clinicians < dropped.high
    assert snips(own, policy.weight[seen], log.cluster[seen]).high < world.risk


def test_completing_leaves_observed_stays_and_whole_logs_alone():
    world = make_missing(300, seed=1)
    whole = complete_losses(world.data)
    assert np.isfinite(whole.logged_loss).all()
    assert whole.n_decisions == world.data.n_decisions
    assert complete_losses(whole) is whole
    assert model_losses(whole) is None
    model = model_losses(world.data)
    assert (model.chance >= 0.05).all()
    assert (model.chance <= 1).all()
    assert 0 <= model.predicted.min() <= model.predicted.max() <= 1


def test_an_action_of_which_no_loss_is_known_is_refused_by_its_number():
    world = make_missing(300, seed=2)
    loss = np.where(world.data.action == 1, np.nan, world.data.loss)
    blind = type(world.data)(**{**_fields(world.data), "loss": loss})
    with pytest.raises(
        DataError, match=r"^loss: must be known for some decisions of each action, not 1"
    ):
        complete_losses(blind)


def _fields(data):
    names = ("sequence", "offsets", "schema", "action", "missing_loss")
    return {name: getattr(data, name) for name in names}
