"""Networks that predict the loss of every action."""

import copy
from dataclasses import KW_ONLY, dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from etips.data.decisions import Floats, Ints
from etips.data.history_rows import (
    Classifier,
    Summary,
    column_means,
    fill_gaps,
    usual_summary,
)
from etips.data.trajectories import Trajectories
from etips.errors import DataError
from etips.learn.fitting.prepare import Prepared, seeds_from
from etips.learn.fitting.trainer import Trainer, TrainingRequest
from etips.learn.nuisance.shrinkage import action_means, learned_counts, shrink
from etips.learn.training.objectives import bernoulli, squared
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.network import Network

PURPOSE = 2  # of the random numbers drawn here
_SCALINGS = 8  # until the mean prediction is the mean loss to six digits and more


@dataclass(frozen=True, eq=False)
class FittedOutcome:
    """Networks that predict losses, and what they said of stays they had not seen.

    Args:
        bundle: One member a fold, whose mean is the prediction.
        expected: Predicted loss of every action, out of fold, shape (n_decisions, n_actions).
    """

    bundle: Bundle
    expected: Floats


def fit_outcome(
    prepared: Prepared,
    encoder: Encoder,
    settings: Settings,
    trainer: Trainer,
    *,
    seed: int,
    additive: bool = False,
    strict: bool = False,
) -> FittedOutcome:
    """Fit networks that predict the loss of every action, one a fold, all of them at once.

    A loss within [0, 1] is predicted as a probability, any other as an amount: networks learn it in
    standard deviations from its mean, so that they need not walk far. They start at the mean loss
    of each action, and what they learn beyond it is shrunk as far as that fits better out of fold.

    Args:
        prepared: The stays.
        encoder: Of the networks.
        settings: Of the training.
        trainer: Trains them.
        seed: Of the networks.
        additive: Add a history term to an action term, without interaction.
        strict: Predictions out of fold take nothing from the fold: a network's epoch is chosen by
            the others, and it begins at the mean losses of the actions in these. (In logs without
            any effect a judge otherwise sees the best action 0.7 standard errors better.)
    """
    steps, data, share = prepared.steps, prepared.data, is_share(prepared.data)
    centre, unit = (0.0, 1.0) if share else spread(data)
    network = Network(
        encoder, steps.n_features, data.static.shape[1], data.n_actions, additive=additive
    )
    formula = bernoulli if share else squared
    loss = (prepared.loss - centre) / unit
    start = plain_outputs(prepared, centre, unit, learned_counts(prepared), share=share)
    target = Losses(prepared, centre, unit, share=share)
    request = TrainingRequest(
        prepared,
        Bundle.start(
            network, seeds_from(seed, PURPOSE, prepared.folds.n_networks), bias=start.float()
        ),
        lambda outputs, seen: formula(outputs, prepared.action[seen], loss[seen]),
        stage="additive" if additive else "outcome",
        settings=settings,
        stop_by_others=strict,
    )
    bundle = trainer.train(request)
    fitted = shrink(prepared, bundle, start, target)
    answers = target.predict(fitted.strict if strict else fitted.outputs).cpu().numpy()
    return FittedOutcome(fitted.together, centre + unit * answers)


class Losses:
    """Logged losses, as what outputs are held against; see `shrinkage.Target`.

    Args:
        prepared: The stays.
        centre: What was taken off the losses.
        unit: What they were divided by.
        share: Whether outputs are logits of losses in [0, 1], otherwise amounts.
    """

    def __init__(self, prepared: Prepared, centre: float, unit: float, *, share: bool) -> None:
        data = prepared.data
        self.is_share = share
        self.action = torch.from_numpy(data.logged_action.copy())
        self.losses = torch.from_numpy((data.logged_loss - centre) / unit)
        self.centre = plain_outputs(
            prepared, centre, unit, np.ones((1, data.n_decisions)), share=share
        )[0]

    def predict(self, outputs: Tensor) -> Tensor:
        """Predicted loss from outputs."""
        return outputs.sigmoid() if self.is_share else outputs

    def each_loss(self, outputs: Tensor, rows: Tensor) -> Tensor:
        """Cross-entropy, or squared error, of the prediction for the logged actions."""
        taken = self.action.to(outputs.device)[rows]
        logged = outputs.gather(2, taken[None, :, None].expand(len(outputs), -1, 1)).squeeze(2)
        said, true = self.predict(logged).mean(0), self.losses.to(outputs.device)[rows]
        if not self.is_share:
            return (said - true).square()
        return torch.nn.functional.binary_cross_entropy(said, true, reduction="none")

    def shift(self, outputs: Tensor) -> Tensor:
        """What makes the mean predicted loss of the logged actions that of the log, shape ()."""
        taken = self.action.to(outputs.device)
        logged = outputs.gather(1, taken[:, None]).squeeze(1)
        mean, shift = self.losses.to(outputs.device).mean(), logged.new_zeros(())
        if not self.is_share:
            return mean - logged.mean()
        mean = mean.clamp(0.5 / len(logged), 1 - 0.5 / len(logged))
        for _ in range(_SCALINGS):
            shift = shift + mean.logit() - (logged + shift).sigmoid().mean().logit()
        return shift


def plain_outputs(
    prepared: Prepared, centre: float, unit: float, counts: Floats, *, share: bool
) -> Tensor:
    """Outputs that say the mean loss of each action, for networks that count so, shape (J, K)."""
    data = prepared.data
    losses = (data.logged_loss - centre) / unit
    means = action_means(losses, data.logged_action, data.n_actions, counts)
    if not share:
        return torch.from_numpy(means)
    size = counts.sum(1, keepdims=True)
    return torch.from_numpy((means * size + 0.5) / (size + 1)).logit()


def is_share(data: Trajectories) -> bool:
    """Whether every logged loss lies in [0, 1]."""
    loss = data.logged_loss
    return bool(((loss >= 0) & (loss <= 1)).all())


def spread(data: Trajectories) -> tuple[float, float]:
    """Mean and standard deviation of the logged losses; 1 for the latter where they are equal."""
    loss = data.logged_loss
    return float(loss.mean()), float(loss.std()) or 1.0


@dataclass(eq=False)
class SklearnOutcome:
    """A classifier of the loss from a fixed-size summary of the history and the action taken.

    The loss must be 0 or 1. The action enters as 0/1 columns, so that a linear classifier gives it
    the same effect in everybody; trees and products of columns let it differ.

    Args:
        classifier: Of losses 0 and 1. Not fitted yet; it is copied, never changed.
        summary: As in `SklearnModel`, as is what becomes of missing values.
    """

    classifier: Classifier
    _: KW_ONLY
    summary: Summary | None = None

    def cross_fit(self, data: Trajectories, fold: Ints) -> Floats:
        """Predicted loss of every action, by a classifier that did not learn from the stay.

        Args:
            data: Logged stays.
            fold: Fold of each stay, shape (n_stays,).
        """
        loss = data.logged_loss
        if not np.isin(loss, (0.0, 1.0)).all():
            raise DataError("loss", "must be 0 or 1 for a classifier of the loss")
        table = (self.summary or usual_summary(data))(data)
        fold_of_decision = fold[data.decisions().stay]
        expected = np.zeros((data.n_decisions, data.n_actions))
        for number in np.unique(fold):
            inside = fold_of_decision == number
            own = copy.deepcopy(self.classifier)
            rows = fill_gaps(table, column_means(table[~inside]))
            taken = _beside(rows[~inside], data.logged_action[~inside], data.n_actions)
            own.fit(taken, loss[~inside].astype(np.int64))
            for action in range(data.n_actions):
                asked = np.full(int(inside.sum()), action)
                said = own.predict_proba(_beside(rows[inside], asked, data.n_actions))
                expected[inside, action] = _chance_of_one(own, said)
        return expected


def _beside(rows: NDArray[np.float32], action: Ints, n_actions: int) -> NDArray[np.float32]:
    return np.concatenate([rows, np.eye(n_actions, dtype=np.float32)[action]], axis=1)


def _chance_of_one(classifier: object, said: Floats) -> Floats:
    """Probability of loss 1; a fold that saw only one kind of loss knows only that one."""
    classes = list(classifier.classes_)  # type: ignore[attr-defined]
    return said[:, classes.index(1)] if 1 in classes else np.zeros(len(said))
