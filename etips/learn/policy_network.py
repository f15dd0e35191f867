"""A policy that is learned as a whole: networks that minimise the doubly robust risk.

It stands beside a stack of predicted losses. A network that starts as the clinicians and changes
what they do reads the patient as well as they did, which a prediction of losses has to learn anew;
with many actions and few losses of each that is most of what there is to gain.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from torch import Tensor

from etips.data.decisions import Ints
from etips.learn.fitting.crossfit import out_of_fold
from etips.learn.fitting.trainer import Trainer, TrainingRequest
from etips.learn.judge import Judge
from etips.learn.learners.policy_search import finish_of
from etips.learn.nuisances import CrossFit, Nuisances
from etips.learn.training.objectives import doubly_robust, kl_divergence
from etips.models.bundle import Bundle

KL = 0.04
"""Least weight of the divergence from the clinicians, in standard deviations of the loss."""

WEIGHT = 10.0
"""Largest weight of a residual while networks learn: heavier ones are noise of rare actions. In
ICU-Sepsis (lag 0, 5,000 stays) a network gains 0.008 with weights of up to 100, 0.015 with 20 and
0.017 with 10, where one that may take no action below 0.05 gains 0.018."""


@dataclass(frozen=True, eq=False)
class PolicyNetwork:
    """Networks of a policy, one a fold.

    Args:
        request: That they came from.
        bundle: As they are judged.
        actions: Likeliest action of every decision, by networks that had not seen it, shape (n,).
    """

    request: TrainingRequest
    bundle: Bundle
    actions: Ints

    @classmethod
    def learn(cls, log: CrossFit, nuisances: Nuisances, judge: Judge, lean: float) -> Self | None:
        """Learn them from the clinicians' networks on; None where there are none.

        Args:
            log: The stays.
            nuisances: What is expected of every action.
            judge: Propensities of what was done.
            lean: How much what the clinicians do has to count.
        """
        imitation = nuisances.imitation
        if imitation is None or not isinstance(imitation.bundle, Bundle):
            return None
        prepared = log.prepared

        def by_row(values: np.ndarray) -> Tensor:
            return prepared.by_row(values.astype(np.float32))

        action, loss = prepared.action, by_row(log.loss)
        expected, likely = by_row(nuisances.expected), by_row(np.log(nuisances.mixture.table))
        chance = by_row(np.log(np.maximum(judge.chance, 1 / WEIGHT)))
        pull = max(KL, lean)

        def risk(outputs: Tensor, seen: Tensor) -> Tensor:
            value = doubly_robust(outputs, action[seen], loss[seen], chance[seen], expected[seen])
            return value + pull * kl_divergence(outputs, likely[seen])

        request = TrainingRequest(
            prepared,
            imitation.bundle,
            risk,
            stage="policy",
            settings=log.policy_settings(),
            stop_by_others=True,
        )
        bundle = log.trainer.train(request)
        actions = out_of_fold(bundle, prepared, _likeliest)[0]
        return cls(request, bundle, actions.cpu().numpy())

    def finish(self, trainer: Trainer) -> Bundle:
        """The networks, which go on with all stays."""
        request = finish_of(self.request, self.bundle)
        return self.bundle if request is None else trainer.train(request)


def _likeliest(outputs: Tensor, _: Tensor) -> Tensor:
    return outputs.argmax(-1)
