"""The log that an evaluation weighs with: propensities and predicted losses, known or fitted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from etips.data.decisions import Floats
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.evaluation.log import PROPENSITY_FLOOR, Log
from etips.learn.fitting.driver import drive
from etips.learn.fitting.prepare import Prepared, choose_device, prepare
from etips.learn.fitting.stages import ENCODER, Training
from etips.learn.learners.learner import Learner
from etips.learn.nuisance.outcome import fit_outcome
from etips.learn.nuisance.outcome_models import SklearnOutcome
from etips.learn.nuisance.propensity import fit_propensity
from etips.models.encoders.registry import AnyEncoder, as_encoder
from etips.policies.policy import FittedPolicy


class Policy(Protocol):
    """Anything that gives the probability of every action at every decision."""

    def predict_proba(self, data: Trajectories) -> Floats:
        """Shape (n_decisions, n_actions), in decision order."""


@dataclass(frozen=True)
class Models:
    """How an evaluation comes by propensities and predicted losses.

    Args:
        encoder: Of the networks fitted here.
        training: Of them; the folds are stays of the evaluated data.
        outcome: Predict losses, for the estimators that use them: True by our networks, or by a
            `SklearnOutcome`; False leaves those estimators out.
        clip: Propensities below this are raised to it.
        seed: Of the networks.
    """

    encoder: AnyEncoder = ENCODER
    training: Training = field(default_factory=Training)
    outcome: bool | SklearnOutcome = True
    clip: float = PROPENSITY_FLOOR
    seed: int = 0

    @property
    def n_folds(self) -> int:
        """Parts of the evaluated stays; two at least, since none may be judged by itself."""
        return max(self.training.n_folds, 2)


@dataclass(frozen=True, eq=False)
class EvaluationLog:
    """The log, and where what it holds came from.

    Args:
        log: The decisions.
        notes: In words, for the record.
        fitted: Fitted propensities of all actions, to be looked at where the log uses known ones,
            shape (n_decisions, n_actions).
    """

    log: Log
    notes: Mapping[str, str]
    fitted: Floats | None


def make_log(policies: Sequence[Policy], data: Trajectories, models: Models) -> EvaluationLog:
    """The decisions of `data` with what it takes to weigh them.

    Propensities are those in the data; else those of the first policy that fitted some; else they
    are cross-fitted on `data`, by stay, as predicted losses always are.
    """
    by_policy = next((own for p in policies if (own := _fitted(p)) is not None), None)
    fitted = None if by_policy is None else by_policy.propensities(data)
    prepared = None
    if data.propensity is not None:
        propensities, source = None, "known, from the data"
    elif fitted is not None:
        propensities, source = fitted, "fitted with the policy, on its training stays"
    else:
        prepared = _prepare(data, models)
        propensities, source = (
            _propensities(prepared, models),
            "cross-fitted on the evaluated stays",
        )
    predicted = _predicted(data, models, prepared)
    log = Log.of(data, propensities=propensities, predicted=predicted, floor=models.clip)
    notes = {
        "propensities": source,
        "predicted losses": "cross-fitted on the evaluated stays" if models.outcome else "none",
        "clip": f"{log.propensity_floor:g}",
    }
    return EvaluationLog(log, notes, None if data.propensity is None else fitted)


def _propensities(prepared: Prepared, models: Models) -> Floats:
    settings = models.training.with_seed(models.seed).propensity
    networks = fit_propensity(prepared, as_encoder(models.encoder), settings, seed=models.seed)
    return np.asarray(np.exp(drive(networks).log_probabilities))


def _predicted(data: Trajectories, models: Models, prepared: Prepared | None) -> Floats | None:
    """Cross-fitted loss of every action at every decision, or None if nobody wants it."""
    if isinstance(models.outcome, SklearnOutcome):
        fold = assign_folds(data, n_folds=models.n_folds, seed=models.seed)
        return models.outcome.cross_fit(data, fold)
    if not models.outcome:
        return None
    settings = models.training.with_seed(models.seed).outcome
    prepared = prepared or _prepare(data, models)
    networks = fit_outcome(prepared, as_encoder(models.encoder), settings, seed=models.seed)
    return drive(networks).expected


def _prepare(data: Trajectories, models: Models) -> Prepared:
    device = choose_device(models.training.device)
    return prepare(data, n_folds=models.n_folds, seed=models.seed, device=device)


def _fitted(policy: Policy) -> FittedPolicy | None:
    """The policy as it was fitted, where propensities were fitted with it."""
    own = policy.fitted_policy() if isinstance(policy, Learner) else policy
    return own if isinstance(own, FittedPolicy) and own.propensity is not None else None
