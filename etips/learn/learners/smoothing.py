"""Objectives published since the paper, each a learner of its own: made for heavy or bad weights.

All start from the clinicians, are judged on stays not learned from, and give way to a constant or
to the clinicians where they are not better, as `EtIPS` does. What they minimise, and who published
it, is in `etips.learn.training.smoothed_risks`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.requests import Requests
from etips.learn.learners.aims import Aim, Form
from etips.learn.learners.fit import Fit
from etips.learn.learners.foundation import Foundation, check_kl, usual_kl
from etips.learn.learners.network_learner import NetworkLearner
from etips.learn.learners.policy_search import PolicySearch
from etips.learn.nuisance.propensity_models import PropensityModel


@dataclass(kw_only=True, eq=False)
class WeightedLearner(NetworkLearner):
    """What the learners of this module share.

    Args:
        propensity: As in `EtIPS`.
        kl: Weight of the KL divergence from the propensities; left out 0.02, or 0.05 with lag 1.
        clip: Logged propensities below this are raised to it.
        encoder: As in `EtIPS`.
        support: Least propensity of an action that may be recommended; see `lay_foundation`.
        training: Folds, device, and settings of each kind of network.
        models: As in `NetworkLearner`.
        seed: Same seed, machine and versions, same policy.
    """

    propensity: PropensityModel | None = None
    support: float | None = None
    kl: float | None = None
    clip: float = PROPENSITY_FLOOR

    form: ClassVar[Form]

    def _learn(self, stays: Trajectories) -> Requests[Fit]:
        check_kl(self.kl)
        aims = self._aims(float(stays.logged_loss.mean()))
        base = yield from self._lay_foundation(
            stays, support=self.support, model=self.propensity, clip=self.clip
        )
        return (yield from self.learn_policy(base, aims))

    def learn_policy(self, base: Foundation, aims: Sequence[Aim]) -> Requests[Fit]:
        """The policies of some aims and the one that is chosen."""
        settings = base.settings(self.training.with_seed(self.seed + 1).policy)
        start = base.start.sets(len(aims))
        kl = usual_kl(self.kl, base.prepared.data)
        finish = self.training.finish
        search = PolicySearch(base, aims, start, settings, kl=kl, racing=False, finish=finish)
        return (yield from search.run())

    def _aims(self, mean_loss: float) -> list[Aim]:  # noqa: ARG002  # some have it
        """What is trained, one set of networks each."""
        return [Aim(self.form)]


@dataclass(kw_only=True, eq=False)
class BetaIPS(WeightedLearner):
    """Weighted risk with the baseline at which its gradient varies least, in place of translations.

    Gupta et al., RecSys 2024, arXiv 2405.05736. Settings as in `WeightedLearner`.
    """

    form: ClassVar[Form] = "beta-IPS"


@dataclass(kw_only=True, eq=False)
class WeightedLikelihood(WeightedLearner):
    """Likelihood of the logged actions, each times what it gained over its propensity.

    Aouali and Sakhi, arXiv 2509.03456. Settings as in `WeightedLearner`. Easy to minimise, but what
    is easy is another aim: actions become as likely as they gain, not the best one certain.
    """

    form: ClassVar[Form] = "weighted likelihood"


@dataclass(kw_only=True, eq=False)
class StrengthLearner(WeightedLearner):
    """One of a form with a number that says how much it smooths or fears.

    Args:
        strengths: Candidates, of which one is chosen on held-out stays.
    """

    strengths: Sequence[float] = ()

    most: ClassVar[float] = math.inf

    def _aims(self, mean_loss: float) -> list[Aim]:
        self._check_strengths()
        return [Aim(self.form, self._translation(mean_loss), value) for value in self.strengths]

    def _translation(self, mean_loss: float) -> float:  # noqa: ARG002
        return math.nan

    def _check_strengths(self) -> None:
        end = "" if math.isinf(self.most) else f", at most {self.most:g}"
        rule = f"must hold at least one, all of them finite and above 0{end}"
        some = self.strengths
        if not isinstance(some, Sequence | np.ndarray) or not len(some):
            raise SettingError("strengths", rule, fix="Give a list.")
        for strength in some:
            require_number("strengths", strength)
            if not (0 < strength <= self.most and math.isfinite(strength)):
                raise SettingError("strengths", rule)


@dataclass(kw_only=True, eq=False)
class LogSumExp(StrengthLearner):
    """Log-sum-exp of weighted gains: what one heavy weight says counts for little.

    Behnamnia et al., ICML 2025, arXiv 2506.06873. Gains are taken off the largest loss.

    Args:
        strengths: Candidates of minus the published lambda; towards 0 it is the plain risk.
    """

    strengths: Sequence[float] = (0.1, 1.0)

    form: ClassVar[Form] = "log-sum-exp"


@dataclass(kw_only=True, eq=False)
class LogSmoothing(StrengthLearner):
    """Logarithm of each weighted gain.

    Sakhi, Aouali, Alquier and Chopin, NeurIPS 2024. Gains are taken off the largest loss.

    Args:
        strengths: Candidates of the published lambda; towards 0 it is the plain risk.
    """

    strengths: Sequence[float] = (0.1, 0.3, 1.0)

    form: ClassVar[Form] = "logarithmic smoothing"


@dataclass(kw_only=True, eq=False)
class ExponentialSmoothing(StrengthLearner):
    """Gains over a power of the propensity.

    Aouali, Brunel, Rohde and Korba, ICML 2023. Gains are taken off the largest loss.

    Args:
        strengths: Candidates of the published alpha; 1 is the plain risk.
    """

    strengths: Sequence[float] = (0.5, 0.8, 1.0)

    form: ClassVar[Form] = "exponential smoothing"
    most: ClassVar[float] = 1.0


@dataclass(kw_only=True, eq=False)
class Pessimistic(StrengthLearner):
    """An upper bound of the risk: it grows with the policy's own weights.

    Jin, Ren, Yang and Wang, arXiv 2212.09900. The mean loss is taken off the loss.

    Args:
        strengths: Candidates of the width of the bound, in standard errors of the weights.
    """

    strengths: Sequence[float] = (1.0, 5.0)

    form: ClassVar[Form] = "pessimistic"

    def _translation(self, mean_loss: float) -> float:
        return mean_loss
