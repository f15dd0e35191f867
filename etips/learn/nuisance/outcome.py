"""Networks that predict the loss of every action."""

from dataclasses import dataclass

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.learn.fitting.crossfit import out_of_fold
from etips.learn.fitting.prepare import Prepared, seeds_from
from etips.learn.fitting.requests import Requests, TrainingRequest
from etips.learn.training.objectives import bernoulli, squared
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.network import Network

PURPOSE = 2  # of the random numbers drawn here


@dataclass(frozen=True, eq=False)
class FittedOutcome:
    """Networks that predict losses, and what they said of stays they had not seen.

    Args:
        bundle: One network a fold.
        expected: Predicted loss of every action, out of fold, shape (n_decisions, n_actions).
    """

    bundle: Bundle
    expected: Floats


def fit_outcome(
    prepared: Prepared, encoder: Encoder, settings: Settings, *, seed: int, additive: bool = False
) -> Requests[FittedOutcome]:
    """Fit networks that predict the loss of every action, one a fold, all of them at once.

    A loss within [0, 1] is predicted as a probability, any other as an amount: networks learn it in
    standard deviations from its mean, so that they need not walk far.

    Args:
        prepared: The stays.
        encoder: Of the networks.
        settings: Of the training.
        seed: Of the networks.
        additive: Add a history term to an action term, without interaction.
    """
    steps, data, share = prepared.steps, prepared.data, is_share(prepared.data)
    centre, unit = (0.0, 1.0) if share else _spread(data)
    network = Network(
        encoder, steps.n_features, data.static.shape[1], data.n_actions, additive=additive
    )
    formula = bernoulli if share else squared
    loss = (prepared.loss - centre) / unit
    bundle = yield TrainingRequest(
        prepared,
        Bundle.start(network, seeds_from(seed, PURPOSE, prepared.folds.n_networks)),
        lambda outputs, seen: formula(outputs, prepared.action[seen], loss[seen]),
        stage="additive" if additive else "outcome",
        settings=settings,
    )
    answers = out_of_fold(bundle, prepared, lambda o, _: o.sigmoid() if share else o)[0]
    return FittedOutcome(bundle, centre + unit * answers.double().cpu().numpy())


def is_share(data: Trajectories) -> bool:
    """Whether every logged loss lies in [0, 1]."""
    loss = data.logged_loss
    return bool(((loss >= 0) & (loss <= 1)).all())


def _spread(data: Trajectories) -> tuple[float, float]:
    """Mean and standard deviation of the logged losses; 1 for the latter where they are equal."""
    loss = data.logged_loss
    return float(loss.mean()), float(loss.std()) or 1.0
