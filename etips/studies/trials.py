"""One trial of a search: fit a learner with some settings, and judge it on what was held out."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from etips.data.decisions import Floats
from etips.data.splitting import assign_folds
from etips.data.trajectories import Trajectories
from etips.data.trajectory_reader import load_trajectories
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.files.fingerprint import fingerprint
from etips.learn.fitting.candidates import Candidate, estimate_candidate
from etips.learn.learners.catalogue import require_method
from etips.learn.learners.learner import Learner, fit_together
from etips.learn.learners.recipes import Recipe
from etips.learn.nuisance.propensity import measure
from etips.learn.training.sharing import Sharing
from etips.policies.policy import FittedPolicy
from etips.runs.run import Run

DATA = "data"
"""The folder beside the trials' own that holds the stays."""


def run_trials(
    arguments: Mapping[str, Any], folder: Path, sharing: Sharing | None = None
) -> dict[str, Any]:
    """The work of a task: fit, judge, and keep the judgements alone.

    Several trials are of one shape, and their networks train as one bundle.

    Args:
        arguments: `method`, a list of `settings`, one a trial, `seed`, `device`, and the
            fingerprint of the search.
        folder: Of the task; the stays lie beside it.
        sharing: Tasks that share the device with this one.
    """
    data = load_trajectories(folder.parent / DATA)
    each = [{**arguments, "settings": settings} for settings in arguments["settings"]]
    recipes = [Recipe(own["method"], own["settings"], own["seed"]) for own in each]
    learners = [recipe.make(device=arguments["device"]) for recipe in recipes]
    with ExitStack() as stack:
        runs = [
            stack.enter_context(Run(folder / f"run-{number}", fingerprint(**own)))
            for number, own in enumerate(each)
        ]
        fit_together(learners, data, runs=runs, sharing=sharing)
        judged = [judge(*own, data) for own in zip(recipes, learners, strict=True)]
        for run in runs:
            run.clear()
    return {"trials": judged}


def judge(recipe: Recipe, learner: Learner, data: Trajectories) -> dict[str, Any]:
    """What held-out stays say of a learner fitted to `data`, as JSON can hold it.

    `risk` and `std_error` of the policy that the learner kept; `sound` if its weights pass the
    guard of the default selection; `log_loss` of the propensities that the weights rest on, where
    those were fitted. A learner that compares candidates has them judged already, each by networks
    that did not learn from the stays in question. Of any other, every fold is put to the networks
    that did not learn from it. An imitation has the same weights whatever it learnt; its risk is
    the log-loss itself.
    """
    chosen = next((candidate for candidate in learner.path_ if candidate.chosen), None)
    if chosen is not None:
        known = require_method(recipe.method).known_propensities
        fitted = None if known else learner.quality_
        return _found(chosen, None if fitted is None else fitted.log_loss)
    policies, propensities = _out_of_fold(learner.fitted_policy(), data, recipe.seed)
    row, action = np.arange(data.n_decisions), data.logged_action
    log_loss = measure(propensities, action).log_loss
    if require_method(recipe.method).imitates:
        return {"risk": log_loss, "std_error": 0.0, "sound": True, "log_loss": log_loss}
    known = data.propensity is not None
    chance = data.logged_propensity if known else propensities[row, action]
    stay, loss = data.decisions().stay, data.logged_loss
    candidate = estimate_candidate(
        policies[row, action], np.maximum(chance, PROPENSITY_FLOOR), loss, stay, np.nan, None
    )
    return _found(candidate, None if known else log_loss)


def _out_of_fold(policy: FittedPolicy, data: Trajectories, seed: int) -> tuple[Floats, Floats]:
    """The policy's and its clinicians' probabilities, fold by fold, shape (n_decisions, K) each."""
    assert policy.propensity is not None
    n_folds = policy.propensity.n_members
    fold = assign_folds(data, n_folds=n_folds, seed=seed)
    of_decision = fold[data.decisions().stay]
    policies = np.empty((data.n_decisions, data.n_actions))
    propensities = np.empty_like(policies)
    for number in range(n_folds):
        networks = None if policy.networks is None else policy.networks.select([number])
        own = replace(policy, networks=networks, propensity=policy.propensity.select([number]))
        asked = data.subset(fold == number)
        policies[of_decision == number] = own.predict_proba(asked)
        propensities[of_decision == number] = own.propensities(asked)
    return policies, propensities


def _found(candidate: Candidate, log_loss: float | None) -> dict[str, Any]:
    """The candidate in numbers; one without any weight has none."""
    finite = bool(np.isfinite(candidate.risk) and np.isfinite(candidate.std_error))
    return {
        "risk": candidate.risk if finite else None,
        "std_error": candidate.std_error if finite else None,
        "sound": candidate.sound and finite,
        "matching_factor": candidate.matching_factor,
        "effective_size": candidate.effective_size,
        "log_loss": log_loss,
        "translation": None if np.isnan(candidate.translation) else candidate.translation,
        "action": candidate.action,
    }
