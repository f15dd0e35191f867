"""The paper's Algorithm 1, all translations and folds at once, and its plainer relatives."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from etips.errors import SettingError, require_number
from etips.learn.fitting.prepare import seeds_from
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.learner import Fit
from etips.learn.learners.policy_objectives import Form, Variant
from etips.learn.learners.policy_search import PolicyLearner, Selection
from etips.learn.nuisance.fitted_nuisances import FittedNuisances
from etips.learn.nuisance.outcome import FittedOutcome
from etips.learn.nuisance.propensity import KnownPropensity
from etips.models.bundle import Bundle

PURPOSE = 3  # of the random numbers drawn for policy networks

Init = Literal["propensity", "random"]
"""Where policy networks start: as the clinicians, or anywhere (the paper)."""


@dataclass(kw_only=True, eq=False)
class EtIPS(PolicyLearner):
    """Estimated translated inverse propensity score, Algorithm 1 of Wu et al. (2020).

    Fits the clinicians' policy, then policies that minimise
    mean((loss - translation) * policy / propensity), and takes the likeliest action of the one that
    is kept. One policy network is trained a fold, judged on that fold, and all networks of a
    translation answer together. Without translations the baseline is the one at which the gradient
    varies least (Gupta et al., RecSys 2024, arXiv 2405.05736), found anew in every step.

    Args:
        translations: A grid, trained at once, of which one is kept; in the units of the loss, and
            those within its range can be of use. Left out the method finds its own baseline.
        propensity: As in `PolicyLearner`, like what is not told here.
        init: Start from the clinicians (does not collapse) or at random (the paper).
        selection: "held-out" looks at risk, error, matching factor and effective size of the
            likeliest actions on stays not learned from; "paper" at SNIPS alone.
    """

    translations: Sequence[float] | None = None
    init: Init = "propensity"
    selection: Selection = "held-out"

    def variants(self, mean_loss: float = math.nan) -> list[Variant]:  # noqa: ARG002
        """One set of networks a translation, or one that finds its own baseline."""
        if self.translations is None:
            return [Variant("beta-IPS")]
        return [Variant("translated", value) for value in self.translations]

    @property
    def _by_paper(self) -> bool:
        return self.selection == "paper"

    def _start(self, base: FittedNuisances, n_sets: int) -> Bundle:
        if self.init == "propensity":
            return super()._start(base, n_sets)
        seeds = seeds_from(self.seed, PURPOSE, base.prepared.folds.n_networks)
        return Bundle.start(base.propensity.bundle.network, list(seeds) * n_sets)

    def _check(self) -> None:
        super()._check()
        rule, some = "must hold at least one, all of them finite", self.translations
        if some is not None and (not isinstance(some, Sequence | np.ndarray) or not len(some)):
            raise SettingError("translations", rule, fix="Give a list.")
        for translation in () if some is None else some:
            require_number("translations", translation)
            if not math.isfinite(translation):
                raise SettingError("translations", rule)
        for name, value, kind in (
            ("init", self.init, Init),
            ("selection", self.selection, Selection),
        ):
            if value not in get_args(kind):
                raise SettingError(name, f"must be {' or '.join(get_args(kind))}")


def BetaIPS(**settings: Any) -> EtIPS:  # noqa: ANN401, N802  # settings and name as EtIPS has them
    """`EtIPS` by its own baseline, under the name that its authors gave it."""
    return EtIPS(**{"translations": None, **settings})


def TIPS(**settings: Any) -> EtIPS:  # noqa: ANN401, N802
    """Translated inverse propensity score: `EtIPS` with the propensities that are in the data."""
    return EtIPS(**{"propensity": KnownPropensity(), **settings})


def EIPS(**settings: Any) -> EtIPS:  # noqa: ANN401, N802
    """Inverse propensity score, estimated: `EtIPS` as the paper runs it without translation.

    Kept as a baseline. With a loss that is never negative it flees every logged action, and its
    matching factor near zero says so.
    """
    plain = {"translations": (0.0,), "init": "random", "selection": "paper"}
    return EtIPS(**{**plain, "support": 0.0, "kl": 0.0, **settings})


def IPS(**settings: Any) -> EtIPS:  # noqa: ANN401, N802
    """`EIPS` with the propensities that are in the data."""
    return EIPS(**{"propensity": KnownPropensity(), **settings})


MULTIPLIERS = (0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05)
"""Lagrange multipliers of the article, for losses in [0, 1]; there is a matching factor to each."""


def BanditNet(**settings: Any) -> EtIPS:  # noqa: ANN401, N802  # settings and name as EtIPS has them
    """BanditNet (Joachims, Swaminathan and de Rijke 2018), as `EtIPS` sets it up.

    Networks minimise mean((loss - multiplier) policy / propensity) from a random start, one for
    every multiplier, and the one of least self-normalised risk is kept. Propensities are in the
    data; there is no floor on support and no pull towards the clinicians.
    """
    own = {
        "propensity": KnownPropensity(),
        "translations": MULTIPLIERS,
        "init": "random",
        "selection": "paper",
    }
    return EtIPS(**{**own, "support": 0.0, "kl": 0.0, **settings})


@dataclass(kw_only=True, eq=False)
class DoublyRobust(PolicyLearner):
    """Minimise the doubly robust risk: predicted losses, corrected by weighted residuals.

    Both the propensities and the predicted losses are cross-fitted. No translation is needed: the
    correction has mean zero, so there is nothing to flee from. The policy takes its likeliest
    action. Settings as in `PolicyLearner`.
    """

    kl: float = 0.01

    def learn_on(
        self, base: FittedNuisances, trainer: Trainer, outcome: FittedOutcome | None = None
    ) -> Fit:
        """Predict losses where they are not given, then learn the policy."""
        outcome = self._fit_outcome(base, trainer) if outcome is None else outcome
        return super().learn_on(base, trainer, outcome)

    def variants(self, mean_loss: float) -> list[Variant]:  # noqa: ARG002
        """One set of networks."""
        return [Variant("doubly robust")]


@dataclass(kw_only=True, eq=False)
class WeightedLikelihood(PolicyLearner):
    """Likelihood of the logged actions, each times what it gained over its propensity.

    Aouali and Sakhi, arXiv 2509.03456. Settings as in `PolicyLearner`. Easy to minimise, but what
    is easy is another aim: actions become as likely as they gain, not the best one certain.
    """

    def variants(self, mean_loss: float) -> list[Variant]:  # noqa: ARG002
        """One set of networks."""
        return [Variant("weighted likelihood")]


@dataclass(kw_only=True, eq=False)
class StrengthLearner(PolicyLearner):
    """One of a form with a number that says how much it smooths or fears.

    Args:
        strengths: Candidates, of which one is chosen on held-out stays.
    """

    strengths: Sequence[float] = ()

    form: ClassVar[Form]
    most: ClassVar[float] = math.inf

    def variants(self, mean_loss: float) -> list[Variant]:
        """One set of networks a strength."""
        translation = mean_loss if self.form == "pessimistic" else math.nan
        return [Variant(self.form, translation, value) for value in self.strengths]

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
