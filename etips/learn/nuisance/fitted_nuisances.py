"""Which networks suit some stays, in which batches they learn, and for how long."""

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from etips.data.decisions import Bools, Floats
from etips.data.history_rows import has_past
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number, require_seed
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.prepare import Prepared, choose_device, prepare
from etips.learn.fitting.stages import ENCODER, OUTCOME, PROPENSITY, Training
from etips.learn.fitting.trainer import Trainer
from etips.learn.nuisance.propensity import (
    FittedPropensity,
    KnownPropensity,
    PropensityModel,
    check_model,
    cross_fit_model,
    fit_propensity,
)
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.encoder import Encoder
from etips.models.encoders.last_step import LastStep
from etips.models.encoders.registry import AnyEncoder, as_encoder
from etips.policies.policy import FittedPolicy, Kind

STEPS, SMALLEST_BATCH = 10, 32
"""Steps of an epoch, and rows of a batch at least: of a small log a batch of 256 would be all."""

BRIEF_FROM, BRIEF_BATCH, BRIEF_RATE, BRIEF_STEPS, FEWEST_EPOCHS = 5_000, 128, 6e-3, 400, 5
"""Of so many stays on, propensities and losses are learned in smaller batches, at a higher rate
and for fewer epochs: as many as come to so many steps. Out of fold they fit as well in a third of
the time: ICU-Sepsis, 8,000 stays, propensities 0.056 above the entropy of the clinicians both, 10
against 34 s; 16,000 stays, squared error of losses 0.2379 and 0.2380, 9 against 30 s."""


def encoder_for(encoder: AnyEncoder, data: Trajectories, *, earlier_actions: bool) -> Encoder:
    """The encoder asked for; the usual one has no memory where no decision sees an earlier step."""
    shape = as_encoder(encoder)
    plain = shape == ENCODER and not earlier_actions and not has_past(data)
    return LastStep() if plain else shape


def suit(settings: Settings, n_stays: int) -> Settings:
    """Settings whose batches suit the number of stays: an epoch has about ten of them.

    Of few stays batches are small, or networks would have taken a few dozen steps when they end. A
    batch size that was set is left alone.
    """
    if settings.batch_size != Settings().batch_size:
        return settings
    return replace(
        settings, batch_size=min(max(n_stays // STEPS, SMALLEST_BATCH), settings.batch_size)
    )


def shorten(settings: Settings, n_stays: int) -> Settings:
    """Settings of networks of propensities or losses that learn from many stays in fewer epochs.

    Settings that were given are left alone.
    """
    usual = replace(settings, seed=PROPENSITY.seed) in (PROPENSITY, OUTCOME)
    if not usual or n_stays < BRIEF_FROM:
        return settings
    epochs = max(-(-BRIEF_STEPS * BRIEF_BATCH // n_stays), FEWEST_EPOCHS)
    return replace(
        settings, epochs=epochs, batch_size=BRIEF_BATCH, learning_rate=BRIEF_RATE, patience=3
    )


SUPPORT = 0.05
"""Least propensity of an action that may be recommended, if nothing else is said."""


@dataclass(frozen=True, eq=False)
class FittedNuisances:
    """Stays, propensities and support, ready for an objective.

    Args:
        prepared: The stays.
        propensity: Networks that imitate the clinicians; policies start from them.
        chance: Propensity of each logged action, clipped, shape (n_decisions,).
        clipped_share: Share of decisions whose propensity was below the clip.
        support: Least propensity of a recommended action.
        allowed: Actions with that much support, out of fold, shape (n_decisions, n_actions).
        encoder: Of all networks.
    """

    prepared: Prepared
    propensity: FittedPropensity
    chance: Floats
    clipped_share: float
    support: float
    allowed: Bools
    encoder: Encoder

    def allowed_rows(self) -> Tensor:
        """Allowed actions by row, shape (n_steps, n_actions)."""
        return self.prepared.by_row(self.allowed)

    def log_chance_rows(self) -> Tensor:
        """Clipped log-propensity of the logged action by row, shape (n_steps,)."""
        return self.prepared.by_row(np.log(self.chance).astype(np.float32))

    def log_propensity_rows(self) -> Tensor:
        """Log-propensity of every action by row, shape (n_steps, n_actions)."""
        return self.prepared.by_row(self.propensity.log_probabilities.astype(np.float32))

    def settings(self, own: Settings) -> Settings:
        """Settings of networks, in batches that suit the number of stays."""
        return suit(own, self.prepared.data.n_stays)

    def policy(self, kind: Kind, *, networks: Bundle | None = None) -> FittedPolicy:
        """A policy that stands on this and takes its likeliest action.

        Args:
            kind: How outputs become a policy.
            networks: Its own.
        """
        return FittedPolicy(
            kind=kind,
            schema=self.prepared.data.schema,
            scaler=self.prepared.scaler,
            propensity=self.propensity.together,
            support=self.support,
            networks=networks,
            acts="likeliest",
            earlier_actions=self.prepared.steps.previous is not None,
        )


def fit_nuisances(
    data: Trajectories,
    trainer: Trainer,
    *,
    encoder: AnyEncoder,
    training: Training,
    seed: int,
    support: float = SUPPORT,
    model: PropensityModel | None = None,
    clip: float = PROPENSITY_FLOOR,
) -> FittedNuisances:
    """Prepare stays, fit propensities, and find which actions have support.

    Args:
        data: Logged stays.
        trainer: Trains the networks.
        encoder: Shape of every network's memory.
        training: How they are trained, and in how many folds.
        seed: Of folds and networks.
        support: Least propensity of a recommended action.
        model: Where the logged propensities come from; our networks if left out.
        clip: Logged propensities below this are raised to it.
    """
    _check(training, support, clip, seed)
    check_model(model, data)
    training, n = training.with_seed(seed), data.n_stays
    prepared = prepare(
        data,
        n_folds=training.n_folds,
        seed=seed,
        device=choose_device(training.device),
        earlier_actions=training.earlier_actions,
        features=training.features,
    )
    shape = encoder_for(encoder, data, earlier_actions=training.earlier_actions)
    settings = suit(shorten(training.propensity, n), n)
    calibrate = training.calibrate
    propensity = fit_propensity(prepared, shape, settings, trainer, seed=seed, calibrate=calibrate)
    plain = logged_propensity(prepared, propensity, model)
    return FittedNuisances(
        prepared=prepared,
        propensity=propensity,
        chance=np.maximum(plain, clip),
        clipped_share=float((plain < clip).mean()),
        support=support,
        allowed=np.exp(propensity.log_probabilities) >= support,
        encoder=shape,
    )


def logged_propensity(
    prepared: Prepared, fitted: FittedPropensity, model: PropensityModel | None
) -> Floats:
    """Propensity of each logged action, from a model that had not seen its stay."""
    data = prepared.data
    if isinstance(model, KnownPropensity):
        return data.logged_propensity
    if model is None:
        table = np.exp(fitted.log_probabilities)
    else:
        table = cross_fit_model(model, data, prepared.folds.fold)
    return np.asarray(table[np.arange(data.n_decisions), data.logged_action])


def _check(training: Training, support: float, clip: float, seed: int) -> None:
    """Refuse settings outside their limits before anything is trained."""
    if not isinstance(training, Training):
        raise SettingError("training", "must be Training(...)")
    training.check()
    require_number("clip", clip)
    if not 0 < clip <= 1:
        raise SettingError("clip", "must be in (0, 1]")
    require_number("support", support)
    if not 0 <= support < 1:
        raise SettingError("support", "must be in [0, 1)")
    require_seed(seed)
