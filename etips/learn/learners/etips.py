"""The paper's Algorithm 1, all translations and folds at once, and its plainer relatives."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.prepare import seeds_from
from etips.learn.fitting.requests import Requests
from etips.learn.learners.aims import Aim
from etips.learn.learners.fit import Fit
from etips.learn.learners.foundation import Foundation, check_kl, usual_kl
from etips.learn.learners.network_learner import NetworkLearner
from etips.learn.learners.policy_search import PolicySearch
from etips.learn.learners.selection import Selection
from etips.learn.nuisance.outcome import is_share
from etips.learn.nuisance.propensity_models import KnownPropensity, PropensityModel
from etips.models.bundle import Bundle

_LOG = logging.getLogger(__name__)

PURPOSE = 3  # of the random numbers drawn for policy networks

TRANSLATIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The paper's grid in (0, 1), for losses in [0, 1]; values beyond 1 are allowed."""

OTHERS = (Aim("beta-IPS"), Aim("smoothed gains", 0.9, 1.0))
"""What stands beside the usual translations: the baseline of least variance, and gains smoothed by
log(1 + weight gain) with harms left alone. Why these is in docs/method/noise.md."""

ROBUST = (Aim("doubly robust"),)
"""What stands beside them where a regression of the loss does, whose predictions it corrects."""

BEYOND = (
    "The usual translations are for losses in [0, 1], and some losses lie beyond: "
    "rescale the loss, or set translations within its range."
)

POOLED = (
    "The propensities that were given tell less well what was done than their mean with fitted "
    "ones. Weights are made of that mean."
)

Init = Literal["propensity", "random"]
"""Where policy networks start: as the clinicians, or anywhere (the paper)."""


@dataclass(kw_only=True, eq=False)
class EtIPS(NetworkLearner):
    """Estimated translated inverse propensity score, Algorithm 1 of Wu et al. (2020).

    Fits the clinicians' policy, then for every translation a policy that minimises
    mean((loss - translation) * policy / propensity), and keeps one of them, to draw from or to take
    its likeliest action. One policy network is trained a fold, judged on that fold, and all of a
    translation's networks answer together. A constant policy, or an imitation of the clinicians, is
    kept where no trained one beats it beyond noise.

    Args:
        translations: Candidates, in the units of the loss: those within its range can be of use.
            Every constant policy and the clinicians stand beside them.
        others: Let policies of other objectives (`OTHERS`) and, in a small log, a regression of the
            loss stand beside the translations. Left out they do beside the usual ones, not beside
            those that somebody set. Never with the paper's selection or from a random start.
        propensity: Where logged propensities come from: a model with `fit` and `predict_proba`,
            `KnownPropensity()`, or our networks if left out.
        encoder: `GRU(...)`, `LSTM(...)`, or any causal torch module (a class or an instance).
        init: Start from the clinicians (does not collapse) or at random (the paper).
        selection: "held-out" looks at risk, error, matching factor and effective size on stays not
            learned from; "paper" at SNIPS alone, and takes the likeliest action.
        support: Least propensity of an action that may be recommended; see `lay_foundation`.
        kl: Weight of the KL divergence from the propensities; left out 0.02, or 0.05 with lag 1.
        clip: Logged propensities below this are raised to it; the share is `clipped_share_`.
        training: Folds, device, and settings of each kind of network.
        models: As in `NetworkLearner`; a start at random needs networks.
        seed: Same seed, machine and versions, same policy.
    """

    translations: Sequence[float] = TRANSLATIONS
    others: bool | None = None
    propensity: PropensityModel | None = None
    init: Init = "propensity"
    selection: Selection = "held-out"
    support: float | None = None
    kl: float | None = None
    clip: float = PROPENSITY_FLOOR

    def _learn(self, stays: Trajectories) -> Requests[Fit]:
        self._check()
        within = is_share(stays) or stays.missing_loss == "weight"  # stand-ins may lie beyond
        if tuple(self.translations) == TRANSLATIONS and not within:
            _LOG.warning(BEYOND)
        base = yield from self._lay_foundation(  # lines 1 and 2
            stays,
            support=self.support,
            model=self.propensity,
            clip=self.clip,
            rescale=self.selection != "paper",
            models="networks" if self.init == "random" else None,
            regression=self._has_others(),
        )
        return (yield from self.learn_policy(base))

    def learn_policy(self, base: Foundation, *, racing: bool = True) -> Requests[Fit]:
        """The policies of all translations and the one that is chosen.

        Args:
            base: What they stand on.
            racing: Let translations drop out where they may; False trains all to the end.
        """
        random = self.init == "random"
        if self._has_others() and base.pooled is not None:
            _LOG.warning(POOLED)
            base = replace(base, chance=base.pooled)
        regression = base.regression() if self._has_others() else None
        aims = [*self.aims(), *(() if regression is None else ROBUST)]
        search = PolicySearch(  # lines 3 to 7, all translations at once
            base,
            aims,
            self._start(base, len(aims)),
            base.settings(self.training.with_seed(self.seed + 1).policy),
            kl=usual_kl(self.kl, base.prepared.data),
            selection=self.selection,
            racing=racing and not random and self.selection != "paper",  # which take their time
            regression=regression,
            finish=self.training.finish,
        )
        return (yield from search.run())

    def aims(self) -> list[Aim]:
        """What is trained, one set of networks each; of a small log `ROBUST` is, too."""
        aims = [Aim("translated", value) for value in self.translations]
        return [*aims, *OTHERS] if self._has_others() else aims

    def _has_others(self) -> bool:
        """Whether other objectives and a regression stand beside the translations."""
        if self.selection == "paper" or self.init == "random":
            return False
        return tuple(self.translations) == TRANSLATIONS if self.others is None else self.others

    def _check(self) -> None:
        rule, some = "must hold at least one, all of them finite", self.translations
        if not isinstance(some, Sequence | np.ndarray) or not len(some):
            raise SettingError("translations", rule, fix="Give a list.")
        for translation in some:
            require_number("translations", translation)
            if not math.isfinite(translation):
                raise SettingError("translations", rule)
        for name, value, kind in (
            ("init", self.init, Init),
            ("selection", self.selection, Selection),
        ):
            if value not in get_args(kind):
                raise SettingError(name, f"must be {' or '.join(get_args(kind))}")
        check_kl(self.kl)
        if not isinstance(self.others, bool | None):
            raise SettingError("others", "must be true or false")
        if self.init == "random" and self.models == "trees":
            raise SettingError("models", "must be networks where policies start at random")

    def _start(self, base: Foundation, n_sets: int) -> Bundle:
        """Policy networks before they are trained: a set an aim."""
        n_folds = base.prepared.folds.n_networks
        if self.init == "propensity":
            return base.start.sets(n_sets)
        seeds = list(seeds_from(self.seed, PURPOSE, n_folds)) * n_sets
        return Bundle.start(base.start.bundle.network, seeds)


def TIPS(**settings: Any) -> EtIPS:  # noqa: ANN401, N802  # settings and name as EtIPS has them
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
