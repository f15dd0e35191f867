"""Learners that train policy networks: variants side by side, judged on held-out stays, one kept.

Every network is judged on stays that it did not learn from. With one variant there is no choice,
and the figures say what the one policy comes to.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.candidates import Candidate, Judged, Weighing, blank, judge
from etips.learn.fitting.crossfit import out_of_fold
from etips.learn.fitting.prepare import Folds
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.fitting.trainer import Trainer, TrainingRequest
from etips.learn.learners.learner import Fit, Learner
from etips.learn.learners.policy_objectives import Variant, form_objective
from etips.learn.nuisance.fitted_nuisances import SUPPORT, FittedNuisances, fit_nuisances
from etips.learn.nuisance.outcome import FittedOutcome, fit_outcome
from etips.learn.nuisance.propensity import PropensityModel
from etips.learn.training.objectives import part_of
from etips.models.bundle import Bundle
from etips.models.encoders.registry import AnyEncoder
from etips.models.network import forbid


@dataclass(kw_only=True, eq=False)
class NetworkLearner(Learner):
    """A learner that trains networks.

    Args:
        encoder: `GRU(...)`, `LSTM(...)`, or any causal torch module (a class or an instance).
        training: Folds, device, and settings of each kind of network.
        seed: Same seed, machine and versions, same policy.
    """

    encoder: AnyEncoder = ENCODER
    training: Training = field(default_factory=Training)
    seed: int = 0

    def _fit_nuisances(
        self,
        stays: Trajectories,
        trainer: Trainer,
        *,
        support: float,
        model: PropensityModel | None = None,
        clip: float = PROPENSITY_FLOOR,
    ) -> FittedNuisances:
        """Propensities and support, with the arguments of `fit_nuisances`."""
        return fit_nuisances(
            stays,
            trainer,
            encoder=self.encoder,
            training=self.training,
            seed=self.seed,
            support=support,
            model=model,
            clip=clip,
        )

    def _fit_outcome(
        self, base: FittedNuisances, trainer: Trainer, *, additive: bool = False
    ) -> FittedOutcome:
        """Predicted losses of the same stays; `additive` without interaction."""
        settings = base.settings(self.training.with_seed(self.seed).outcome)
        return fit_outcome(
            base.prepared, base.encoder, settings, trainer, seed=self.seed, additive=additive
        )


Selection = Literal["held-out", "paper"]
"""How to choose: by what was held out and how much it weighs, or by the paper's plain SNIPS."""

CAUTION = 0.5
"""Standard errors that are added to a risk: of two alike the one that more decisions bear out. The
figures of docs/method/noise.md are of this rule."""


def choose(candidates: Sequence[Candidate], selection: Selection) -> int:
    """Place of the candidate that becomes the policy.

    Held-out: the least risk plus `CAUTION` standard errors of those that are sound; where none is,
    the one that rests on most decisions. Paper: the least SNIPS, whatever it rests on.

    Args:
        candidates: Judged ones.
        selection: How to choose.
    """
    if selection == "paper":
        return int(np.argmin([each.risk for each in candidates]))
    if not any(each.sound for each in candidates):
        return int(np.argmax([each.effective_size for each in candidates]))
    high = [each.risk + CAUTION * each.std_error if each.sound else np.inf for each in candidates]
    return int(np.argmin(np.nan_to_num(high, nan=np.inf)))


def risk_of_choosing(
    judged: Judged, selection: Selection, fold: Ints
) -> tuple[float, float] | None:
    """Risk of what choosing comes to, and its standard error; None without folds.

    The patients of each fold are judged by the candidate that the other folds choose.

    Args:
        judged: The candidates.
        selection: How to choose.
        fold: Of each patient, shape (k,).
    """
    if fold.max() == 0:
        return None
    places = np.empty(len(fold), np.int64)
    for number in range(fold.max() + 1):
        inside = fold == number
        places[inside] = choose(judged.on(~inside).candidates, selection)
    evidence = judged.totals.evidence_of_choice(places)
    return evidence.value, evidence.std_error


FINISH_TIMES, MAX_FINISH_EPOCHS = 1.5, 8
"""As long as networks had learned at their best they go on, this many times; epochs at most."""


def finish_of(request: TrainingRequest, networks: Bundle) -> TrainingRequest | None:
    """The training in which judged networks go on with all stays, their rate falling to zero.

    Of five folds a network learns from seven tenths of the stays, and it stops while its rate is
    high. Once a policy is chosen no stay has to judge any more (docs/method/learning.md). None
    where it is not known for how long the networks had learned.
    """
    if not networks.trained:
        return None
    settings, folds = request.settings, request.prepared.folds
    best = [
        each.epochs - settings.patience if each.epochs < settings.epochs else each.epochs
        for each in networks.trained
    ]
    epochs = min(math.ceil(FINISH_TIMES * fmean(best)), MAX_FINISH_EPOCHS, settings.epochs)
    every, none = torch.ones_like(folds.weight), torch.zeros_like(folds.held_out)
    return replace(
        request,
        prepared=replace(request.prepared, folds=Folds(folds.fold, every, none)),
        bundle=networks,
        stage="finish",
        settings=replace(settings, epochs=max(epochs, 1)),
    )


KL = 0.02
"""Weight of the KL divergence from the propensities."""


def judge_variants(
    base: FittedNuisances,
    bundle: Bundle,
    variants: Sequence[Variant],
    *,
    draws: bool = False,
    expected: Floats | None = None,
) -> Judged:
    """What held-out stays say of every set of networks.

    Where nothing is allowed a policy abstains: the clinicians decide, and the weight is 1.

    Args:
        base: What they stand on.
        bundle: The networks, set by set.
        variants: One a set.
        draws: Judge policies that draw, not their likeliest actions.
        expected: Predicted losses, which take noise out of the risks, shape (n, K).
    """
    data, action = base.prepared.data, base.prepared.data.logged_action
    allowed, taken = base.allowed_rows(), base.prepared.action
    losses = None if expected is None else base.prepared.by_row(expected)

    def readout(outputs: Tensor, seen: Tensor) -> Tensor:
        logits = forbid(outputs.double(), allowed[seen])
        policy = logits.softmax(-1)
        if not draws:
            policy = one_hot(logits.argmax(-1), logits.shape[-1]).double()
        logged = taken[seen][:, None].expand(len(policy), -1, 1)
        kept = [policy.gather(2, logged).squeeze(2)]
        if losses is not None:
            kept.append((policy * losses[seen]).sum(-1))
        return torch.cat(kept)

    answers = list(out_of_fold(bundle, base.prepared, readout).cpu().numpy())
    chosen, predicted = answers[: len(variants)], answers[len(variants) :]
    abstains = ~base.allowed.any(axis=1)
    logged = None if expected is None else expected[np.arange(len(action)), action]
    totals = Weighing(base.chance, data.logged_loss, data.cluster, logged).totals(
        [np.where(abstains, base.chance, each) for each in chosen],
        [] if logged is None else [np.where(abstains, logged, each) for each in predicted],
    )
    size, candidates = base.prepared.folds.n_networks, []
    for place, variant in enumerate(variants):
        trained = bundle.trained[place * size : (place + 1) * size]
        epochs = max((network.epochs for network in trained), default=None)
        candidate = blank(variant.translation)
        candidates.append(
            replace(candidate, form=variant.form, strength=variant.strength, epochs=epochs)
        )
    return judge(candidates, totals)


@dataclass(kw_only=True, eq=False)
class PolicyLearner(NetworkLearner):
    """A learner that trains a set of policy networks a variant, and keeps one.

    Args:
        propensity: Where logged propensities come from: a model with `fit` and `predict_proba`,
            `KnownPropensity()`, or our networks if left out.
        encoder: `GRU(...)`, `LSTM(...)`, or any causal torch module (a class or an instance).
        support: Least propensity of an action that may be recommended.
        kl: Weight of the KL divergence from the propensities.
        clip: Logged propensities below this are raised to it; the share is `clipped_share_`.
        training: Folds, device, and settings of each kind of network.
        seed: Same seed, machine and versions, same policy.
    """

    propensity: PropensityModel | None = None
    support: float = SUPPORT
    kl: float = KL
    clip: float = PROPENSITY_FLOOR

    @abstractmethod
    def variants(self, mean_loss: float) -> list[Variant]:
        """What is trained, one set of networks each, in a log of this mean loss."""

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:
        self._check()
        base = self._fit_nuisances(
            stays, trainer, support=self.support, model=self.propensity, clip=self.clip
        )
        return self.learn_on(base, trainer)

    def learn_on(
        self, base: FittedNuisances, trainer: Trainer, outcome: FittedOutcome | None = None
    ) -> Fit:
        """Train a set of networks a variant, judge all of them, and keep one.

        Args:
            base: Stays, propensities and support.
            trainer: Trains the networks.
            outcome: Predicted losses, which take noise out of held-out risks.
        """
        variants = self.variants(float(base.prepared.data.logged_loss.mean()))
        expected = None if outcome is None else outcome.expected
        request = TrainingRequest(
            base.prepared,
            self._start(base, len(variants)),
            form_objective(base, variants, kl=self.kl, expected=expected),
            stage="policy",
            settings=base.settings(self.training.with_seed(self.seed + 1).policy),
        )
        bundle = trainer.train(request)
        judged = judge_variants(base, bundle, variants, draws=self._by_paper, expected=expected)
        selection: Selection = "paper" if self._by_paper else "held-out"
        path, best = list(judged.candidates), choose(judged.candidates, selection)
        _, first = np.unique(base.prepared.data.cluster, return_index=True)
        fold = base.prepared.folds.fold[base.prepared.data.decisions().stay[first]]
        risk, error = risk_of_choosing(judged, selection, fold) or (None, None)
        path[best] = replace(path[best], chosen=True, corrected=risk, corrected_error=error)
        size = base.prepared.folds.n_networks
        chosen = slice(best * size, (best + 1) * size)
        networks = bundle.select(range(chosen.start, chosen.stop))
        if self.training.finish and not self._by_paper:
            finish = finish_of(
                replace(request, objective=part_of(request.objective, chosen)), networks
            )
            networks = networks if finish is None else trainer.train(finish)
        return Fit(
            base.policy("softmax", networks=networks),
            propensity=base.propensity,
            outcome=outcome,
            path=tuple(path),
            quality=base.propensity.quality,
            support=base.support,
            clipped_share=base.clipped_share,
        )

    @property
    def _by_paper(self) -> bool:
        """Whether the paper's rule chooses: by SNIPS of drawn actions, without finishing."""
        return False

    def _start(self, base: FittedNuisances, n_sets: int) -> Bundle:
        """Networks before they are trained, set by set: the clinicians'."""
        imitation = base.propensity.bundle
        return imitation.select(list(range(imitation.n_members)) * n_sets)

    def _check(self) -> None:
        """Refuse settings outside their limits before anything is trained."""
        require_number("kl", self.kl)
        if not 0 <= self.kl < np.inf:
            raise SettingError("kl", "must be finite and not negative")
