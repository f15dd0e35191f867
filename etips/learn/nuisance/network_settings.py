"""Which networks suit some stays, in which batches they learn, and for how long."""

from dataclasses import replace

from etips.data.history_rows import has_past
from etips.data.trajectories import Trajectories
from etips.learn.fitting.stages import ENCODER, OUTCOME, PROPENSITY
from etips.learn.training.settings import Settings
from etips.models.encoders.encoder import Encoder
from etips.models.encoders.last_step import LastStep
from etips.models.encoders.registry import AnyEncoder, as_encoder

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
