"""Policies of several aims, trained side by side, judged on held-out stays, and one of them kept.

Every network is judged on stays that it did not learn from. With one aim there is no choice, and
the figures say what the one policy comes to.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.candidates import Candidate, Judged, blank, judge
from etips.learn.fitting.crossfit import out_of_fold
from etips.learn.fitting.prepare import Folds, Prepared
from etips.learn.fitting.risk_totals import Weighing
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.fitting.trainer import Trainer, TrainingRequest
from etips.learn.learners.learner import Fit, Learner
from etips.learn.learners.policy_objectives import Aim, aims_objective
from etips.learn.nuisance.fitted_nuisances import SUPPORT, FittedNuisances, fit_nuisances
from etips.learn.nuisance.outcome import FittedOutcome, fit_outcome
from etips.learn.nuisance.propensity import PropensityModel
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle, Trained
from etips.models.encoders.registry import AnyEncoder
from etips.models.masking import forbid


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
        """Propensities and support; see `fit_nuisances`.

        Args:
            stays: Logged.
            trainer: Trains the networks.
            support: Least propensity of a recommended action.
            model: Where the logged propensities come from.
            clip: Logged propensities below this are raised to it.
        """
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
        return int(np.argmin([own.risk for own in candidates]))
    if not any(own.sound for own in candidates):
        return int(np.argmax([own.effective_size for own in candidates]))
    high = [own.risk + CAUTION * own.std_error if own.sound else np.inf for own in candidates]
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


TIMES = 1.5
"""As long as networks had learned at their best they go on, this many times."""

MOST = 8
"""Epochs of it, at most."""


def finish_of(request: TrainingRequest, networks: Bundle) -> TrainingRequest | None:
    """The training in which networks go on with all stays; None where nobody knows how they ended.

    Args:
        request: That they came from.
        networks: The chosen ones, as judged.
    """
    if not networks.trained:
        return None
    settings = replace(request.settings, epochs=finish_epochs(networks, request.settings))
    return replace(
        request,
        prepared=_with_all(request.prepared),
        bundle=networks,
        stage="finish",
        settings=settings,
    )


def finish_epochs(networks: Bundle, settings: Settings) -> int:
    """Epochs for which networks go on.

    Args:
        networks: With how their training ended.
        settings: That they were trained by.
    """
    best = [
        own.epochs - settings.patience if own.epochs < settings.epochs else own.epochs
        for own in networks.trained
    ]
    return max(min(math.ceil(TIMES * fmean(best)), MOST, settings.epochs), 1)


def _with_all(prepared: Prepared) -> Prepared:
    """The same stays, of which every network learns from all and stops by none."""
    folds = prepared.folds
    every, none = torch.ones_like(folds.weight), torch.zeros_like(folds.held_out)
    return replace(prepared, folds=Folds(folds.fold, every, none))


KL = 0.02
"""Weight of the KL divergence from the propensities."""


@dataclass(frozen=True, eq=False)
class PolicySearch:
    """A search for one policy among those of several aims.

    Args:
        base: What they stand on.
        aims: One a set of networks.
        start: Networks before they are trained, set by set.
        settings: How they are trained.
        kl: Weight of the KL divergence from the propensities.
        selection: How one is chosen. The paper's rule judges policies that draw; any other judges
            their likeliest action, which is what the kept one takes in either case.
        outcome: Predicted losses, which then take noise out of held-out risks, and which doubly
            robust policies learn from; None without.
        finish: Let the chosen networks go on with all stays; the paper's never do.
    """

    base: FittedNuisances
    aims: Sequence[Aim]
    start: Bundle
    settings: Settings
    kl: float
    selection: Selection = "held-out"
    outcome: FittedOutcome | None = None
    finish: bool = True

    def run(self, trainer: Trainer) -> Fit:
        """Train, judge and choose."""
        bundle = trainer.train(self.request(range(len(self.aims))))
        return self.choose_among(bundle, trainer)

    def request(self, sets: Sequence[int]) -> TrainingRequest:
        """The training of some sets."""
        size = self.base.prepared.folds.n_networks
        members = [number * size + fold for number in sets for fold in range(size)]
        own = [self.aims[number] for number in sets]
        return TrainingRequest(
            self.base.prepared,
            self.start.select(members),
            aims_objective(self.base, own, kl=self.kl, expected=self._expected),
            stage="policy",
            settings=self.settings,
        )

    def choose_among(self, bundle: Bundle, trainer: Trainer) -> Fit:
        """The policy that is chosen among networks that were trained before, set by set."""
        base, judged = self.base, self.judge(bundle)
        path = list(judged.candidates)
        best = choose(path, self.selection)
        corrected = risk_of_choosing(judged, self.selection, _fold_of_patients(base))
        risk, error = corrected or (None, None)
        path[best] = replace(path[best], chosen=True, corrected=risk, corrected_error=error)
        networks = self._finish(bundle, best, trainer)
        return Fit(
            base.policy("softmax", networks=networks),
            propensity=base.propensity,
            outcome=self.outcome,
            path=tuple(path),
            quality=base.propensity.quality,
            support=base.support,
            clipped_share=base.clipped_share,
        )

    def judge(self, bundle: Bundle) -> Judged:
        """What held-out stays say of every set of networks.

        Where nothing is allowed a policy abstains: the clinicians decide, and the weight is 1.
        """
        base, expected = self.base, self._expected
        data, action = base.prepared.data, base.prepared.data.logged_action
        abstains = ~base.allowed.any(axis=1)
        said = None if expected is None else expected[np.arange(len(action)), action]
        weighing = Weighing(base.chance, data.logged_loss, data.cluster, said)
        chosen, predicted = self._answers(bundle)
        totals = weighing.totals(
            [np.where(abstains, base.chance, own) for own in chosen],
            [] if said is None else [np.where(abstains, said, own) for own in predicted],
        )
        size = base.prepared.folds.n_networks
        each = [
            _candidate(aim, bundle.trained[place * size : (place + 1) * size])
            for place, aim in enumerate(self.aims)
        ]
        return judge(each, totals)

    @property
    def _expected(self) -> Floats | None:
        return None if self.outcome is None else self.outcome.expected

    def _answers(self, bundle: Bundle) -> tuple[list[Floats], list[Floats]]:
        """Of every set the probability of the logged action, and the predicted loss if there is."""
        base, draws = self.base, self.selection == "paper"
        allowed, action = base.allowed_rows(), base.prepared.action
        losses = None if self._expected is None else base.prepared.by_row(self._expected)

        def readout(outputs: Tensor, seen: Tensor) -> Tensor:
            logits = forbid(outputs.double(), allowed[seen])
            policy = logits.softmax(-1) if draws else _likeliest(logits)
            taken = action[seen][:, None].expand(len(policy), -1, 1)
            kept = [policy.gather(2, taken).squeeze(2)]
            if losses is not None:
                kept.append((policy * losses[seen]).sum(-1))
            return torch.cat(kept)

        answers = list(out_of_fold(bundle, base.prepared, readout).cpu().numpy())
        return answers[: len(self.aims)], answers[len(self.aims) :]

    def _finish(self, bundle: Bundle, number: int, trainer: Trainer) -> Bundle:
        """The networks of a set, which go on with all stays unless the paper's rule chose them."""
        size = self.base.prepared.folds.n_networks
        chosen = bundle.select(range(number * size, (number + 1) * size))
        if self.selection == "paper" or not self.finish:
            return chosen
        request = finish_of(self.request([number]), chosen)
        return chosen if request is None else trainer.train(request)


@dataclass(kw_only=True, eq=False)
class PolicyLearner(NetworkLearner):
    """A learner that trains a set of policy networks an aim, and keeps one.

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

    def _learn(self, stays: Trajectories, trainer: Trainer) -> Fit:
        self._check()
        base = self._fit_nuisances(
            stays, trainer, support=self.support, model=self.propensity, clip=self.clip
        )
        return self.learn_policy(base, trainer)

    def learn_policy(self, base: FittedNuisances, trainer: Trainer) -> Fit:
        """The policies of all aims, and the one that is kept."""
        return self.search(base).run(trainer)

    def search(self, base: FittedNuisances) -> PolicySearch:
        """How the policy is found on fitted nuisances."""
        aims = self.aims(float(base.prepared.data.logged_loss.mean()))
        settings = base.settings(self.training.with_seed(self.seed + 1).policy)
        imitation = base.propensity.bundle
        start = imitation.select(list(range(imitation.n_members)) * len(aims))
        return PolicySearch(base, aims, start, settings, kl=self.kl, finish=self.training.finish)

    def aims(self, mean_loss: float) -> list[Aim]:
        """What is trained, one set of networks each.

        Args:
            mean_loss: Of the log.
        """
        raise NotImplementedError

    def _check(self) -> None:
        """Refuse settings outside their limits before anything is trained."""
        require_number("kl", self.kl)
        if not 0 <= self.kl < np.inf:
            raise SettingError("kl", "must be finite and not negative")


def _likeliest(logits: Tensor) -> Tensor:
    """Probabilities of a policy that takes its likeliest action."""
    return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).double()


def _candidate(aim: Aim, trained: Sequence[Trained]) -> Candidate:
    """A set of networks, and for how long it was trained as far as that is known."""
    epochs = max((own.epochs for own in trained), default=None)
    return replace(blank(aim.translation), form=aim.form, strength=aim.strength, epochs=epochs)


def _fold_of_patients(base: FittedNuisances) -> Ints:
    """Fold of every patient with a decision, in the order of their numbers."""
    data = base.prepared.data
    _, first = np.unique(data.cluster, return_index=True)
    return np.asarray(base.prepared.folds.fold[data.decisions().stay[first]])
