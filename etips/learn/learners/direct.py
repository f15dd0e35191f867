"""The direct method: predict the loss of every action and take the least."""

from dataclasses import dataclass, field

from etips.data.trajectories import Trajectories
from etips.errors import SettingError
from etips.learn.fitting.requests import Requests
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.learners.fit import Fit
from etips.learn.learners.foundation import lay_foundation
from etips.learn.learners.learner import Learner
from etips.learn.nuisance.outcome import fit_outcome, is_share
from etips.models.encoders.registry import AnyEncoder, as_encoder
from etips.policies.policy import Kind


@dataclass(kw_only=True, eq=False)
class DirectMethod(Learner):
    """Predict the loss of every action from the history, and recommend the least.

    Args:
        interaction: Let the effect of an action depend on the history. False is the network of the
            paper, which adds a history term to an action term: it ranks the actions the same for
            everybody, so it can only give a constant policy.
        encoder: As in `EtIPS`.
        support: Least propensity of an action that may be recommended; see `lay_foundation`.
        training: Folds, device, and settings of each kind of network.
        seed: Same seed, machine and versions, same policy.
    """

    interaction: bool = True
    encoder: AnyEncoder = ENCODER
    support: float | None = None
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _learn(self, stays: Trajectories) -> Requests[Fit]:
        if not isinstance(self.interaction, bool):
            raise SettingError("interaction", "must be true or false")
        base = yield from lay_foundation(
            stays,
            encoder=self.encoder,
            training=self.training,
            seed=self.seed,
            support=self.support,
        )
        outcome = yield from fit_outcome(
            base.prepared,
            as_encoder(self.encoder),
            self.training.with_seed(self.seed).outcome,
            seed=self.seed,
            additive=not self.interaction,
        )
        # The additive network ranks alike in logits; a mean of chances would bend the ranking.
        chances = self.interaction and is_share(stays)
        kind: Kind = "least loss" if chances else "least amount"
        return Fit(
            base.policy(kind, networks=outcome.bundle),
            propensity=base.propensity,
            outcome=outcome,
            quality=base.propensity.quality,
            support=base.support,
        )
