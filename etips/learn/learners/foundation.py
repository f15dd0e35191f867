"""What every learner stands on: prepared stays, propensities, and the actions with support."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from torch import Tensor

from etips.data.decisions import Bools, Floats
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number, require_seed
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.evaluation.reweighting.rebalance import Rebalanced
from etips.learn.fitting.crossfit import by_all
from etips.learn.fitting.prepare import Prepared, choose_device, prepare
from etips.learn.fitting.requests import Requests
from etips.learn.fitting.stages import POLICY, Training
from etips.learn.learners.regression import Regression, begin_regression, fit_regression
from etips.learn.nuisance.balancing import (
    Ground,
    begin_ground,
    check_propensities,
    is_balanced,
    logged_propensity,
)
from etips.learn.nuisance.model_choice import ModelKind, Rivals
from etips.learn.nuisance.policy_start import PolicyStart
from etips.learn.nuisance.pooled_propensity import pooled_propensity
from etips.learn.nuisance.propensity import FittedPropensity
from etips.learn.nuisance.propensity_models import PropensityModel
from etips.learn.nuisance.rare_actions import lower_floor
from etips.learn.nuisance.support import (
    BEYOND_DOUBT,
    LOWEST,
    agreed_floor,
    bears_hidden,
    lead_of_lower,
    may_go_lower,
    usual_floor,
)
from etips.learn.nuisance.weight_scale import weight_scale
from etips.learn.training.beside import Beside
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle
from etips.models.encoders.registry import AnyEncoder
from etips.models.forest import Forest
from etips.models.row_model import RowModel
from etips.policies.deployed import Acts
from etips.policies.policy import FittedPolicy, Kind


@dataclass(frozen=True, eq=False)
class Foundation:
    """Stays, propensities and support, ready for an objective.

    Args:
        prepared: The stays.
        propensity: Networks or trees that imitate the clinicians.
        chance: Propensity of each logged action, balanced, clipped, and scaled so that weights have
            a mean of one where they had not, shape (n_decisions,).
        rebalanced: What balancing did to the propensities; None where it was not tried.
        clipped_share: Share of decisions whose propensity was below the clip.
        support: Least propensity of a recommended action.
        support_is_set: Whether somebody set it, so that it must stay.
        allowed: Actions with that much support, out of fold, shape (n_decisions, n_actions).
        start: Where policies begin.
        rivals: What was fitted, so that losses are predicted by the same.
        begun: What was begun beside the propensities.
        pooled: Propensities of the logged actions that tell better what was done than those that
            were given, shape (n_decisions,); None where none do. See `pooled_propensity`.
    """

    prepared: Prepared
    propensity: FittedPropensity
    chance: Floats
    rebalanced: Rebalanced | None
    clipped_share: float
    support: float
    support_is_set: bool
    allowed: Bools
    start: PolicyStart
    rivals: Rivals
    begun: "Begun"
    pooled: Floats | None = None

    def regression(self) -> Regression | None:
        """Regressions of the loss in the folds of the networks; None in a large log."""
        begun = self.begun.regression
        found = fit_regression(self.prepared) if begun is None else begun()
        if found is None or self.support_is_set:
            return found
        data, likely = self.prepared.data, np.exp(self.propensity.log_probabilities)
        floor = lower_floor(self.support, found.expected, data, likely)
        if floor is None:
            return found
        both = [self, self.with_floor(floor)]
        chosen = [found.least(own.allowed) == data.logged_action for own in both]
        held, free = self._followed(both, [own.astype(np.float64) for own in chosen])
        sure = bears_hidden(data, self.chance, held, free)
        return replace(found, floor=floor) if sure else found

    def with_floor(self, floor: float) -> "Foundation":
        """The same with another floor on support."""
        likely = np.exp(self.propensity.log_probabilities)
        return replace(self, support=floor, allowed=likely >= floor)

    def lowered(self, follow: "Follow") -> "Foundation":
        """The same, with the lowest floor where the log shows that the usual one costs something.

        A trained policy is held against itself with the lowest floor, on stays that its networks
        did not learn from, which costs no training. See docs/method/learning.md.

        Args:
            follow: Probability of the logged action by that policy, on each of some foundations,
                where it does not abstain, shape (n_decisions,) each.
        """
        data = self.prepared.data
        if self.support_is_set or not may_go_lower(self.support, data):
            return self
        lower, rows = self.with_floor(LOWEST), np.arange(data.n_decisions)
        both = (self, lower)
        held, free = self._followed(both, follow(both))
        imitated = np.exp(self.propensity.log_probabilities[rows, data.logged_action])
        lead = lead_of_lower(data, self.chance, held, free, imitated)
        sure = lead > BEYOND_DOUBT and bears_hidden(data, self.chance, held, free)
        return lower if sure else self

    def _followed(
        self, bases: Sequence["Foundation"], chosen: Sequence[Floats]
    ) -> Iterator[Floats]:
        """Probability of the logged action where clinicians decide if a policy abstains."""
        for own, probability in zip(bases, chosen, strict=True):
            yield np.where(own.allowed.any(axis=1), probability, self.chance)

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
        """Settings of policies, at the rate and in batches that suit the stays; see `Rivals.suit`.

        Another rate than the usual one was set by somebody, and is left alone.
        """
        data = self.prepared.data
        if own.learning_rate == POLICY.learning_rate:
            own = replace(own, learning_rate=RATES[data.lag])
        return self.rivals.suit(own, data.n_stays)

    def policy(
        self,
        kind: Kind,
        *,
        networks: Bundle | Forest | RowModel | None = None,
        constant: int | None = None,
        acts: Acts = "likeliest",
    ) -> FittedPolicy:
        """A policy that stands on this.

        Its networks answer together, where they were judged one by one. Where that would make it
        abstain more often than it was judged to, its floor is lowered, unless somebody set it.

        Args:
            kind: How outputs become a policy.
            networks: Its own.
            constant: The one action, where kind is "constant".
            acts: How it acts on its probabilities.
        """
        policy = self._policy(kind, networks=networks, constant=constant, acts=acts)
        if self.support_is_set or not self.support or kind == "imitation":
            return policy
        together, allowed = self._together(policy), self.allowed
        most = together.max(axis=1) if constant is None else together[:, constant]
        some = allowed.any(axis=1) if constant is None else allowed[:, constant]
        return replace(policy, support=agreed_floor(self.support, most, np.asarray(some)))

    def _together(self, policy: FittedPolicy) -> Floats:
        """What a policy takes the clinicians to do, shape (n_decisions, n_actions).

        Its networks are asked about stays that are ready already, which it would get ready anew.
        """
        if not isinstance(policy.propensity, Bundle):
            return policy.propensities(self.prepared.data)
        return np.asarray(by_all(policy.propensity, self.prepared).cpu().numpy())

    def _policy(
        self,
        kind: Kind,
        *,
        networks: Bundle | Forest | RowModel | None,
        constant: int | None,
        acts: Acts,
    ) -> FittedPolicy:
        return FittedPolicy(
            kind=kind,
            schema=self.prepared.data.schema,
            scaler=self.prepared.scaler,
            propensity=self.propensity.together,
            support=self.support,
            networks=networks,
            constant=constant,
            acts=acts,
            earlier_actions=self.prepared.steps.previous is not None,
        )


Follow = Callable[[Sequence[Foundation]], Sequence[Floats]]
"""What a policy makes of the logged actions on some foundations; see `Foundation.lowered`."""

KL = (0.02, 0.05)
"""Weight of the KL divergence from the propensities with lag 0 and 1. With lag 1 some of what moved
the clinicians is hidden, and the log thinks too well of what they seldom did."""


RATES = (POLICY.learning_rate, 2e-3)
"""Learning rate of policies with lag 0 and 1, for the same reason: those that learn faster believe
the log more."""


def usual_kl(kl: float | None, data: Trajectories) -> float:
    """The weight of the KL divergence; what suits the lag of the data where nobody set it."""
    return KL[data.lag] if kl is None else kl


def check_kl(kl: float | None) -> None:
    """Refuse a weight of the KL divergence that would push away, or be no number."""
    if kl is None:
        return
    require_number("kl", kl)
    if not 0 <= kl < np.inf:
        raise SettingError("kl", "must be finite and not negative")


def lay_foundation(
    data: Trajectories,
    *,
    encoder: AnyEncoder,
    training: Training,
    seed: int,
    support: float | None = None,
    model: PropensityModel | None = None,
    clip: float = PROPENSITY_FLOOR,
    rescale: bool = True,
    models: ModelKind = "auto",
    regression: bool = False,
) -> Requests[Foundation]:
    """Prepare stays, fit propensities, and find which actions have support.

    Args:
        data: Logged stays.
        encoder: Shape of every network's memory.
        training: How they are trained, and in how many folds.
        seed: Of folds and networks.
        support: Least propensity of a recommended action. Left out it is 0.05, or 0.1 with lag 1,
            until a trained policy shows what that costs (`Foundation.lowered`, `lower_floor`).
        model: Where the logged propensities come from; our networks if left out. They are balanced
            where that helps held-out stays, unless known or `training.balance` is off.
        clip: Logged propensities below this are raised to it.
        rescale: Bring weights to a mean of one; see `weight_scale`.
        models: What fits propensities and losses; see `Rivals`.
        regression: Begin regressions of the loss, which somebody will ask for.
    """
    _check(training, support, clip, seed)
    check_propensities(model, data)
    training, earlier = training.with_seed(seed), training.earlier_actions
    rivals = Rivals.of(models, data, encoder, seed=seed, earlier_actions=earlier, brief=True)
    device = choose_device(training.device)
    balanced = is_balanced(model, balance=training.balance)
    ground = begin_ground(data, device) if balanced else None
    prepared = _prepare(data, training, seed)
    begun = Begun(ground, begin_regression(prepared) if regression else None)
    propensity = yield from rivals.propensity(prepared, training)
    start = PolicyStart.of(prepared, propensity, rivals.encoder, seed=seed)
    fitted = Fitted(prepared, propensity, start, rivals, begun)
    return weigh_decisions(
        fitted, training, support=support, model=model, clip=clip, rescale=rescale
    )


class Begun(NamedTuple):
    """What needs the log alone, and is done while networks learn.

    Args:
        ground: For balance; None where nobody has begun it.
        regression: Of the loss; None where nobody has begun it.
    """

    ground: Beside[Ground] | None = None
    regression: Callable[[], Regression | None] | None = None


class Fitted(NamedTuple):
    """The clinicians as they were fitted, before anybody asks where weights come from.

    Args:
        prepared: The stays.
        propensity: Networks or trees that imitate the clinicians.
        start: Where policies begin.
        rivals: What was fitted.
        begun: Beside it.
    """

    prepared: Prepared
    propensity: FittedPropensity
    start: PolicyStart
    rivals: Rivals
    begun: Begun = Begun()


def weigh_decisions(
    fitted: Fitted,
    training: Training,
    *,
    support: float | None = None,
    model: PropensityModel | None = None,
    clip: float = PROPENSITY_FLOOR,
    rescale: bool = True,
) -> Foundation:
    """Find the propensities of the logged actions, and which actions have support.

    Args:
        fitted: The clinicians.
        training: How networks are trained.
        support: As in `lay_foundation`, like the others.
        model: Where the logged propensities come from.
        clip: Those below this are raised to it.
        rescale: As in `lay_foundation`.
    """
    prepared, propensity, start, rivals, begun = fitted
    data, likely = prepared.data, np.exp(propensity.log_probabilities)
    balance, ground = training.balance, begun.ground
    logged = logged_propensity(prepared, propensity, model, balance=balance, ground=ground)
    plain = np.exp(logged.log)
    chance = np.maximum(plain, clip)
    imitated = likely[np.arange(len(plain)), data.logged_action]
    if rescale:
        chance = chance * weight_scale(imitated, plain, data.cluster, clip=clip)
    floor = usual_floor(data, likely) if support is None else support
    return Foundation(
        prepared=prepared,
        propensity=propensity,
        chance=chance,
        rebalanced=logged.rebalanced,
        clipped_share=float((plain < clip).mean()),
        support=floor,
        support_is_set=support is not None,
        allowed=likely >= floor,
        start=start,
        rivals=rivals,
        begun=begun._replace(ground=None),  # its tables are no longer needed
        pooled=None
        if model is None
        else pooled_propensity(plain, imitated, data.cluster, clip=clip),
    )


def _prepare(data: Trajectories, training: Training, seed: int) -> Prepared:
    return prepare(
        data,
        n_folds=training.n_folds,
        seed=seed,
        device=choose_device(training.device),
        earlier_actions=training.earlier_actions,
        features=training.features,
    )


def _check(training: Training, support: float | None, clip: float, seed: int) -> None:
    """Refuse settings outside their limits before anything is trained."""
    if not isinstance(training, Training):
        raise SettingError("training", "must be Training(...)")
    training.check()
    require_number("clip", clip)
    if not 0 < clip <= 1:
        raise SettingError("clip", "must be in (0, 1]")
    if support is not None:
        require_number("support", support)
        if not 0 <= support < 1:
            raise SettingError("support", "must be in [0, 1)")
    require_seed(seed)
