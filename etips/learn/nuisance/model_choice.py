"""Networks or trees: whichever fits stays that it did not learn from better.

Trees read one row, so they take part where a decision sees one step: one row a patient, or
`encoder="last"`. Where scikit-learn is not installed networks are alone, and it is told.
"""

import logging
import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from etips.data.history_rows import has_past
from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.learn.fitting.prepare import Prepared
from etips.learn.fitting.requests import Requests
from etips.learn.fitting.stages import ENCODER, PROPENSITY, Training
from etips.learn.nuisance.boosting import BoostedTrees, can_grow_trees
from etips.learn.nuisance.outcome import FittedOutcome, fit_outcome
from etips.learn.nuisance.propensity import FittedPropensity, fit_propensity
from etips.learn.nuisance.tree_models import begin_tree_outcome, begin_tree_propensity
from etips.learn.training.settings import Settings
from etips.models.encoders.encoder import Encoder
from etips.models.encoders.last_step import LastStep
from etips.models.encoders.registry import AnyEncoder, as_encoder
from etips.models.forest import Forest
from etips.notes import note

ModelKind = Literal["auto", "networks", "trees"]
"""What fits propensities and losses: the better of both on held-out stays, or the one named."""

PAST = "must be auto or networks where decisions see earlier steps"
ABSENT = "scikit-learn is not installed: networks are used, trees are not tried"

STEPS, SMALLEST_BATCH, LARGEST_BATCH = 10, 32, 4096
"""Steps of an epoch, and limits on the rows of one, where networks read single rows."""

BRIEF_FROM, BRIEF_BATCH, BRIEF_RATE, BRIEF_STEPS, FEWEST_EPOCHS = 5_000, 128, 6e-3, 400, 5
"""Of so many stays on, propensities that a policy is learned by are trained in smaller batches, at
a higher rate, and for fewer epochs: as many as come to so many steps. Out of fold they fit as well
as those of 25 epochs in a third of the time: ICU-Sepsis, 8,000 stays, 0.056 above the entropy of
the clinicians both, 10 against 34 s; at 4,000 stays there is nothing to gain."""

QUICK = BoostedTrees(learning_rate=0.15, patience=6)
"""How trees are grown here: what stops too early or too late is mended by shrinkage."""

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Rivals:
    """What is fitted, and by which networks.

    Args:
        encoder: Of the networks, those of policies too.
        networks: Whether networks are fitted.
        trees: Whether trees are.
        seed: Of both.
        brief: Whether many stays may be learned in fewer epochs; see `shorten`.
    """

    encoder: Encoder
    networks: bool = True
    trees: bool = False
    seed: int = 0
    brief: bool = False

    @property
    def sentence(self) -> str:
        """Whether something had to win, for the page."""
        both = self.trees and self.networks
        return ", the better on held-out stays" if both else ""

    @classmethod
    def of(
        cls,
        models: ModelKind,
        data: Trajectories,
        encoder: AnyEncoder,
        *,
        seed: int,
        earlier_actions: bool = False,
        brief: bool = False,
    ) -> "Rivals":
        """What suits some stays.

        With "auto" trees take part where decisions see one step, unless somebody chose networks by
        giving an encoder of their own; the networks beside them then have no memory either.

        Args:
            models: What was asked for.
            data: Logged stays.
            encoder: Of the learner.
            seed: Of both.
            earlier_actions: Whether models are to read the action before, which trees do not.
            brief: Whether many stays may be learned in fewer epochs.
        """
        if models not in get_args(ModelKind):
            raise SettingError("models", f"must be {' or '.join(get_args(ModelKind))}")
        shape = as_encoder(encoder)
        plain = cls(shape, seed=seed, brief=brief)
        usual, last = shape == ENCODER, isinstance(shape, LastStep)
        sees_one = not earlier_actions and (last or not has_past(data))
        if models == "networks" or (models == "auto" and not (sees_one and (usual or last))):
            return plain
        if not sees_one:
            fix = 'Use encoder="last" (--set encoder=last), without earlier actions.'
            raise SettingError("models", PAST, fix=fix)
        if not can_grow_trees():
            if models == "trees":
                raise SettingError("models", "trees need scikit-learn, which is not installed")
            _LOG.warning(ABSENT)
            return plain
        own = LastStep() if usual else shape
        return replace(plain, encoder=own, networks=models == "auto", trees=True)

    def suit(self, settings: Settings, n_stays: int) -> Settings:
        """Settings whose batches suit the number of stays: an epoch has about ten of them.

        Of few stays batches are small, or networks would have taken a few dozen steps when they
        end. Beside trees, where rows are read in no time, those of many stays are large. A batch
        size that somebody set, and those of an evaluation, are left alone.

        Args:
            settings: As given.
            n_stays: How many there are to learn from.
        """
        if not (self.trees or self.brief) or settings.batch_size != Settings().batch_size:
            return settings
        largest = LARGEST_BATCH if self.trees else settings.batch_size
        size = min(max(n_stays // STEPS, SMALLEST_BATCH), largest)
        faster = math.sqrt(max(size / settings.batch_size, 1.0))
        return replace(settings, batch_size=size, learning_rate=settings.learning_rate * faster)

    def shorten(self, settings: Settings, n_stays: int) -> Settings:
        """Settings of propensity networks that learn from many stays in fewer epochs.

        Settings that somebody gave, and those of an evaluation, are left alone.

        Args:
            settings: As given.
            n_stays: How many there are to learn from.
        """
        usual = replace(settings, seed=PROPENSITY.seed) == PROPENSITY
        if not self.brief or self.trees or not usual or n_stays < BRIEF_FROM:
            return settings
        epochs = max(-(-BRIEF_STEPS * BRIEF_BATCH // n_stays), FEWEST_EPOCHS)
        return replace(
            settings, epochs=epochs, batch_size=BRIEF_BATCH, learning_rate=BRIEF_RATE, patience=3
        )

    def propensity(self, prepared: Prepared, training: Training) -> Requests[FittedPropensity]:
        """Propensities of the better log-loss on stays not learned from."""
        found: list[FittedPropensity] = []
        grown = None
        if self.trees:  # they grow while networks are trained, where there is a process for them
            trees = replace(QUICK, seed=self.seed)
            grown = begin_tree_propensity(prepared, trees, calibrate=training.calibrate)
        if self.networks:
            settings = self.shorten(training.propensity, prepared.data.n_stays)
            settings = self.suit(settings, prepared.data.n_stays)
            calibrate = training.calibrate
            networks = yield from fit_propensity(
                prepared, self.encoder, settings, seed=self.seed, calibrate=calibrate
            )
            found.append(networks)
        if grown is not None:
            found.insert(0, grown())
        best = min(found, key=lambda own: own.quality.log_loss)
        if len(found) > 1:
            _tell("propensities", best.bundle, [own.quality.log_loss for own in found])
        return best

    def outcome(
        self, prepared: Prepared, training: Training, *, additive: bool = False
    ) -> Requests[FittedOutcome]:
        """Predicted losses of the least squared error on stays not learned from.

        Args:
            prepared: The stays.
            training: How networks are trained.
            additive: Networks alone, without interaction; see `fit_outcome`.
        """
        found: list[FittedOutcome] = []
        grown = None
        if self.trees and not additive:
            grown = begin_tree_outcome(prepared, replace(QUICK, seed=self.seed))
        if self.networks or additive:
            settings = self.suit(training.outcome, prepared.data.n_stays)
            networks = yield from fit_outcome(
                prepared, self.encoder, settings, seed=self.seed, additive=additive
            )
            found.append(networks)
        if grown is not None:
            found.insert(0, grown())
        errors = [_squared_error(own, prepared.data) for own in found]
        best = found[int(np.argmin(errors))]
        if len(found) > 1:
            _tell("predicted losses", best.bundle, errors)
        return best


def name_of(model: object) -> str:
    """What a fitted model is called in records."""
    return "trees" if isinstance(model, Forest) else "networks"


def _squared_error(outcome: FittedOutcome, data: Trajectories) -> float:
    said = outcome.expected[np.arange(data.n_decisions), data.logged_action]
    return float(((data.logged_loss - said) ** 2).mean())


def _tell(what: str, best: object, risks: list[float]) -> None:
    trees, networks = risks
    note(
        f"{what} by {name_of(best)}: held-out risk of trees {trees:.5f}, of networks {networks:.5f}"
    )
