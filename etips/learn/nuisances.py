"""Who was given what, and what is expected of every action: models in folds, stacked.

A super learner judges policies with these, and so does an evaluation.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self

import numpy as np
import torch

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.learn.fitting.prepare import Prepared
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.fitting.trainer import Trainer
from etips.learn.library import (
    LOSSES,
    PROPENSITIES,
    CrossFitted,
    Recipe,
    Size,
    Table,
    Task,
    Workers,
    affordable,
)
from etips.learn.nuisance.fitted_nuisances import encoder_for, shorten, suit
from etips.learn.nuisance.outcome import FittedOutcome, fit_outcome, is_share, spread
from etips.learn.nuisance.propensity import FittedPropensity, fit_propensity
from etips.learn.own_candidates import OwnAnswers
from etips.learn.stacking import LeastSquares, Mixture, mix_propensities, weigh
from etips.learn.training.settings import Settings
from etips.machine import cores
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.encoders.registry import AnyEncoder
from etips.models.stack import Part

NETWORK = "network"

MODELS = (*dict.fromkeys(recipe.name for recipe in (*LOSSES, *PROPENSITIES)), NETWORK)
"""What a stack is made of, where its cost allows."""

SECONDS = 20.0
"""About how long all models of rows together may take on one core, the cheapest first: a table of
5,000 rows by 10 columns has all of them, a history of 25 actions what networks leave time for."""


PendingFits = Sequence[Callable[[], CrossFitted]]
"""Models of rows that threads are fitting; call one for what it says."""


class ModelPredictions(NamedTuple):
    """What one model of the stack predicts for decisions that it did not learn from.

    Args:
        name: What it is called.
        table: Shape (n, K).
        part: Makes the model part of a policy, with a weight.
        seconds: That it took, on one core; networks, on all of them.
    """

    name: str
    table: Floats
    part: Callable[[float], Part]
    seconds: float


@dataclass(frozen=True, eq=False)
class Nuisances:
    """Propensities and predicted losses of every action, out of fold.

    Args:
        propensities: Of each model.
        mixture: Of these.
        outcomes: Predicted losses, in standard deviations from their mean, of each model.
        weights: Of these, where they are asked about the logged action.
        expected: What they come to, shape (n, K).
        imitation: The network among the propensities; None without networks.
    """

    propensities: Sequence[ModelPredictions]
    mixture: Mixture
    outcomes: Sequence[ModelPredictions]
    weights: Floats
    expected: Floats
    imitation: FittedPropensity | None


@dataclass(frozen=True, eq=False)
class CrossFit:
    """A log in folds: what models are fitted to.

    Args:
        prepared: The stays, as networks read them.
        trainer: Trains the networks.
        table: The same as rows.
        fold: Of each decision.
        loss: Logged losses in standard deviations from their mean.
        centre: What was taken off.
        unit: What they were divided by.
        workers: Fit models of rows.
        models: Names of those that are wanted.
        affordable: The models of rows that are fitted.
        encoder: Of the networks.
        training: Of the networks, seeded.
        seed: Of everything.
        left_out: About how many seconds each model would take that was left out, by label.
        seconds_of_all: About how many seconds all models of rows would take.
    """

    prepared: Prepared
    trainer: Trainer
    table: Table
    fold: Ints
    loss: Floats
    centre: float
    unit: float
    workers: Workers
    models: Sequence[str]
    affordable: Sequence[Recipe]
    encoder: Encoder
    training: Training
    seed: int
    left_out: Mapping[str, float]
    seconds_of_all: float

    @classmethod
    def of(
        cls,
        prepared: Prepared,
        trainer: Trainer,
        *,
        encoder: AnyEncoder = ENCODER,
        training: Training,
        seed: int,
        models: Sequence[str] = MODELS,
        recipes: Sequence[Recipe] = (*PROPENSITIES, *LOSSES),
        seconds: float = SECONDS,
    ) -> Self:
        """Stays that were prepared; `close` it when all is fitted."""
        data, table = prepared.data, Table.of(prepared.data)
        centre, unit = spread(data)
        kept, dear, everything = affordable(
            [recipe for recipe in recipes if recipe.name in models],
            Size(data.n_decisions, len(table.columns), data.n_actions),
            n_folds=prepared.folds.n_networks,
            seconds=seconds,
        )
        return cls(
            prepared=prepared,
            trainer=trainer,
            table=table,
            fold=prepared.folds.fold[data.decisions().stay],
            loss=(data.logged_loss - centre) / unit,
            centre=centre,
            unit=unit,
            workers=Workers(min(cores(), torch.get_num_threads())),
            models=models,
            affordable=kept,
            encoder=encoder_for(encoder, data, earlier_actions=training.earlier_actions),
            training=training.with_seed(seed),
            seed=seed,
            left_out=dear,
            seconds_of_all=everything,
        )

    @property
    def data(self) -> Trajectories:
        """The stays."""
        return self.prepared.data

    def close(self) -> None:
        """Let the threads go."""
        self.workers.close()

    def nuisances(self) -> Nuisances:
        """Propensities and predicted losses, each stacked by what fits held-out decisions."""
        tables, losses = self.start_propensities(), self.start_outcomes()
        propensities, mixture, imitation = self.propensities(tables)
        outcomes, weights, expected = self.outcomes(losses)
        return Nuisances(propensities, mixture, outcomes, weights, expected, imitation)

    def propensities(
        self, pending: PendingFits | None = None
    ) -> tuple[list[ModelPredictions], Mixture, FittedPropensity | None]:
        """The models of who was given what, their mixture, and the network of these.

        Args:
            pending: Models of rows that threads are fitting already.
        """
        pending = self.start_propensities() if pending is None else pending
        models, imitation, data = [], None, self.data
        if NETWORK in self.models:
            settings = suit(shorten(self.training.propensity, data.n_stays), data.n_stays)
            imitation = fit_propensity(
                self.prepared,
                self.encoder,
                settings,
                self.trainer,
                seed=self.seed,
                calibrate=self.training.calibrate,
                strict=True,
            )
            models.append(_imitation(imitation))
        models = [*self.collect(pending), *models]
        mixture = mix_propensities([model.table for model in models], data.logged_action)
        return models, mixture, imitation

    def outcomes(
        self, pending: PendingFits | None = None
    ) -> tuple[list[ModelPredictions], Floats, Floats]:
        """The models of losses, their weights, and what they come to; as `propensities`."""
        pending = self.start_outcomes() if pending is None else pending
        models, data = [], self.data
        if NETWORK in self.models:
            started = time.perf_counter()
            settings = suit(shorten(self.training.outcome, data.n_stays), data.n_stays)
            outcome = fit_outcome(
                self.prepared, self.encoder, settings, self.trainer, seed=self.seed, strict=True
            )
            models.append(self._outcome(outcome)._replace(seconds=time.perf_counter() - started))
        models = [*self.collect(pending), *models]
        rows = np.arange(data.n_decisions)
        logged = [model.table[rows, data.logged_action] for model in models]
        weights = LeastSquares(logged, self.loss, self.fold).weights()
        return models, weights, weigh(weights, [model.table for model in models])

    def start_propensities(self) -> PendingFits:
        """Begin to fit who was given what."""
        return self.start_fits(PROPENSITIES, self.loss)

    def start_outcomes(self) -> PendingFits:
        """Begin to fit what the logged actions led to."""
        return self.start_fits([recipe for recipe in LOSSES if recipe.target == "loss"], self.loss)

    def policy_settings(self) -> Settings:
        """How a policy network is trained."""
        return suit(self.training.policy, self.data.n_stays)

    def start_fits(self, recipes: Sequence[Recipe], target: Floats) -> PendingFits:
        """Begin to fit those whose cost allows."""
        action, n_actions = self.data.logged_action, self.data.n_actions
        task = Task(self.table, action, target, self.fold, n_actions, self.seed)
        return [
            self.workers.cross_fit(recipe, task) for recipe in recipes if recipe in self.affordable
        ]

    def collect(self, pending: PendingFits) -> list[ModelPredictions]:
        """Wait for models of rows and say of each that it is there."""
        each = []
        for wait in pending:
            fitted = wait()
            each.append(self.row_model_predictions(fitted))
            self.trainer.fitted(fitted.recipe.label, fitted.seconds)
        return each

    def candidate_predictions(self, answers: OwnAnswers) -> ModelPredictions:
        """What a user's candidate predicts, in standard deviations as all others."""
        part = partial(answers.part, data=self.data)
        return ModelPredictions(
            answers.name, (answers.table - self.centre) / self.unit, part, answers.seconds
        )

    def row_model_predictions(self, fitted: CrossFitted) -> ModelPredictions:
        """What a model of rows predicts; as part of a policy it is in the units of the loss."""
        recipe = fitted.recipe

        def amounts(weight: float) -> Part:
            return self._amounts(fitted.part(weight))

        part = fitted.part if recipe.target == "action" else amounts
        return ModelPredictions(recipe.name, fitted.predicted, part, fitted.seconds)

    def _amounts(self, part: Part) -> Part:
        """A model of standardised losses as one of losses, but for what actions have in common."""
        member = part.member
        changed = {
            name: getattr(member, name) * self.unit
            for name in ("weight", "value", "base")
            if hasattr(member, name)
        }
        return replace(part, member=replace(member, **changed))

    def _outcome(self, fitted: FittedOutcome) -> ModelPredictions:
        """The network that predicts losses; beyond shares its outputs are standard deviations."""
        share = is_share(self.data)

        def part(weight: float) -> Part:
            if share:
                return Part(fitted.bundle, weight, "logit")
            nothing = torch.zeros(1, self.data.n_actions)
            assert isinstance(fitted.bundle, Bundle)
            return Part(fitted.bundle.shrink(nothing, self.unit, nothing), weight, "amount")

        return ModelPredictions(NETWORK, (fitted.expected - self.centre) / self.unit, part, 0.0)


def _imitation(fitted: FittedPropensity) -> ModelPredictions:
    def part(weight: float) -> Part:
        return Part(fitted.together, weight, "softmax")

    return ModelPredictions(NETWORK, np.exp(fitted.log_probabilities), part, 0.0)


def shares(models: Sequence[ModelPredictions], weights: Floats) -> Mapping[str, float]:
    """Weight of each model, by name."""
    return {model.name: float(weight) for model, weight in zip(models, weights, strict=True)}
