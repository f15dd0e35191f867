"""The paper's Algorithm 1, all translations and folds at once, and its plainer relatives."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from etips.errors import SettingError, require_number
from etips.learn.fitting.prepare import seeds_from
from etips.learn.learners.aims import Aim
from etips.learn.learners.fitted_nuisances import FittedNuisances
from etips.learn.learners.policy_search import PolicyLearner, PolicySearch
from etips.learn.learners.selection import Selection
from etips.learn.nuisance.propensity_models import KnownPropensity
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

    def search(self, base: FittedNuisances) -> PolicySearch:
        """How the policy is found on fitted nuisances."""
        usual = super().search(base)
        start = usual.start
        if self.init == "random":
            n_folds = base.prepared.folds.n_networks
            seeds = list(seeds_from(self.seed, PURPOSE, n_folds)) * len(usual.aims)
            start = Bundle.start(start.network, seeds)
        return replace(usual, start=start, selection=self.selection)

    def aims(self, mean_loss: float = math.nan) -> list[Aim]:  # noqa: ARG002  # some have it
        """What is trained: one set of networks a translation."""
        if self.translations is None:
            return [Aim("beta-IPS")]
        return [Aim("translated", value) for value in self.translations]

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
