"""Objectives published since the paper, each a learner of its own: made for heavy or bad weights.

All start from the clinicians, and of several strengths the one is kept that stays not learned from
bear out, as in `EtIPS`. What they minimise, and who published it, is in
`etips.learn.training.smoothed_risks`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from etips.errors import SettingError, require_number
from etips.learn.learners.aims import Aim, Form
from etips.learn.learners.policy_search import PolicyLearner


@dataclass(kw_only=True, eq=False)
class WeightedLikelihood(PolicyLearner):
    """Likelihood of the logged actions, each times what it gained over its propensity.

    Aouali and Sakhi, arXiv 2509.03456. Settings as in `PolicyLearner`. Easy to minimise, but what
    is easy is another aim: actions become as likely as they gain, not the best one certain.
    """

    def aims(self, mean_loss: float) -> list[Aim]:  # noqa: ARG002
        """What is trained: one set of networks."""
        return [Aim("weighted likelihood")]


@dataclass(kw_only=True, eq=False)
class StrengthLearner(PolicyLearner):
    """One of a form with a number that says how much it smooths or fears.

    Args:
        strengths: Candidates, of which one is chosen on held-out stays.
    """

    strengths: Sequence[float] = ()

    form: ClassVar[Form]
    most: ClassVar[float] = math.inf

    def aims(self, mean_loss: float) -> list[Aim]:
        """What is trained: one set of networks a strength."""
        return [Aim(self.form, self._translation(mean_loss), value) for value in self.strengths]

    def _translation(self, mean_loss: float) -> float:  # noqa: ARG002
        return math.nan

    def _check(self) -> None:
        super()._check()
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
