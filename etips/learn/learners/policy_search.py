"""Policies of several aims, trained side by side, judged on held-out stays, and one of them kept.

Every network is judged on stays that it did not learn from. With one aim there is no choice, and
the figures say what the one policy comes to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.learn.fitting.candidates import Candidate, Judged, blank, judge
from etips.learn.fitting.crossfit import out_of_fold
from etips.learn.fitting.risk_totals import Weighing
from etips.learn.fitting.trainer import Trainer, TrainingRequest
from etips.learn.learners.aims import Aim, aims_objective
from etips.learn.learners.finishing import finish_of
from etips.learn.learners.fit import Fit
from etips.learn.learners.fitted_nuisances import SUPPORT, FittedNuisances
from etips.learn.learners.network_learner import NetworkLearner
from etips.learn.learners.selection import Selection, choose, risk_of_choosing
from etips.learn.nuisance.outcome import FittedOutcome
from etips.learn.nuisance.propensity_models import PropensityModel
from etips.learn.training.settings import Settings
from etips.models.bundle import Bundle, Trained
from etips.models.masking import forbid

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
