"""One trial of a search: fit a learner with some settings, and judge it on what was held out."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from etips.choice_record import ChoiceRecord
from etips.data.decisions import Floats
from etips.data.splitting import assign_folds
from etips.data.storage import load_trajectories
from etips.data.trajectories import Trajectories
from etips.evaluation.log import PROPENSITY_FLOOR
from etips.files.fingerprint import fingerprint
from etips.learn.fitting.candidates import Candidate, estimate_candidate
from etips.learn.learners.catalogue import require_method
from etips.learn.learners.learner import Learner
from etips.learn.learners.recipes import Recipe
from etips.learn.nuisance.propensity import Quality, measure
from etips.models.row_model import RowModel
from etips.models.stack import OwnModel, Stack
from etips.models.tree_ensemble import TreeEnsemble
from etips.policies.deployed import Deployed
from etips.policies.policy import FittedPolicy
from etips.runs.run import Run
from etips.runs.tasks import Json

REFITS = 3
"""Folds in which a learner without folds of its own is judged."""

DATA = "data"
"""The folder beside the trials' own that holds the stays."""


@dataclass(frozen=True)
class TrialRecord:
    """What held-out stays say of one trial.

    Args:
        risk: Of what the learner keeps; None without any weight. Where it chose from candidates,
            each fold is judged by the one that the other folds choose: the risk of the kept one is
            the luckiest's, and the more a trial tries, the luckier.
        sound: Whether its weights pass the guard of the default selection.
        log_loss: Of the propensities that the weights rest on; None where those are known.
        matching_factor: Mean weight; None of an imitation, like the rest.
        translation: Of the candidate that was kept, if it has one.
        naive: Risk of the candidate that was kept, not corrected for having been chosen; None where
            nothing was chosen from.
    """

    risk: float | None
    std_error: float | None
    sound: bool
    log_loss: float | None
    matching_factor: float | None = None
    effective_size: float | None = None
    translation: float | None = None
    naive: float | None = None


@dataclass(frozen=True)
class TrialsTask:
    """Fit learners one after another, score them, and keep the scores alone."""

    search: str
    method: str
    settings: tuple[Mapping[str, object], ...]
    seed: int
    device: str

    def run(self, folder: Path) -> Json:
        """Do it; the stays lie beside the task's folder. Finds a `TrialRecord` a trial."""
        data = load_trajectories(folder.parent / DATA)
        records, runs = [], []
        for number, settings in enumerate(self.settings):
            recipe = Recipe(self.method, settings, self.seed)
            identity = fingerprint(search=self.search, recipe=recipe, device=self.device)
            with Run(folder / f"run-{number}", identity) as run:
                learner = recipe.make(device=self.device).fit(data, run=run)
                records.append(score_trial(recipe, learner, data))
                runs.append(run)
        for run in runs:  # when all are done: a task that is killed goes on with its last one
            run.clear()
        return {"trials": [asdict(record) for record in records]}


def score_trial(recipe: Recipe, learner: Learner, data: Trajectories) -> TrialRecord:
    """What held-out stays say of a learner fitted to `data`.

    A learner that compares candidates has them judged already, each by networks
    that did not learn from the stays in question, and knows what its choosing comes to on stays
    that the choice did not look at; so has one that looks ahead to the end of the
    stay, whose risk is the outcome of a stay. Of any other, every fold is put to the networks
    that did not learn from it. An imitation has the same weights whatever it learned; its risk is
    the log-loss itself.
    """
    if learner.choice_ is not None:
        return _stacked(learner.choice_, learner.quality_, data)
    path = [candidate for candidate in learner.path_ if candidate.chosen]
    chosen = path[0] if path else learner.fit_.whole_stay
    if chosen is not None:
        known = require_method(recipe.method).known_propensities
        fitted = None if known else learner.quality_
        return _record(chosen, None if fitted is None else fitted.log_loss)
    deployed, propensities = _out_of_fold(recipe, learner.fitted_policy(), data)
    row, action = np.arange(data.n_decisions), data.logged_action
    log_loss = measure(propensities, action).log_loss
    if require_method(recipe.method).imitates:
        return TrialRecord(log_loss, 0.0, sound=True, log_loss=log_loss)
    known = data.propensity is not None
    chance = data.logged_propensity if known else propensities[row, action]
    chance = np.maximum(chance, PROPENSITY_FLOOR)
    taken = np.where(deployed.abstained, chance, deployed.probabilities[row, action])
    candidate = estimate_candidate(taken, chance, data.logged_loss, data.cluster)
    return _record(candidate, None if known else log_loss)


def _stacked(choice: ChoiceRecord, quality: Quality | None, data: Trajectories) -> TrialRecord:
    """What a super learner knows of its choosing, beside the risk of the clinicians."""
    finite = bool(np.isfinite(choice.corrected) and np.isfinite(choice.error))
    risk = float(data.logged_loss.mean())
    return TrialRecord(
        risk=risk + choice.corrected if finite else None,
        std_error=choice.error if finite else None,
        sound=finite,
        log_loss=None if quality is None or data.propensity is not None else quality.log_loss,
        matching_factor=choice.kept.factor,
        effective_size=choice.kept.size,
        naive=risk + choice.kept.gap,
    )


def _out_of_fold(
    recipe: Recipe, policy: FittedPolicy, data: Trajectories
) -> tuple[Deployed, Floats]:
    """What a policy does, and its clinicians' probabilities (n_decisions, K), fold by fold.

    By the networks that did not learn from the fold; a learner without folds of its own is fitted
    anew without each of some folds.
    """
    members = (policy.propensity, policy.networks)
    whole = any(isinstance(member, Stack | TreeEnsemble) for member in members)
    whole = whole or isinstance(policy.propensity, RowModel)
    if whole:
        n_folds = min(REFITS, int(data.units.max()) + 1)
    else:
        assert policy.propensity is not None
        n_folds = policy.propensity.n_members
    fold = assign_folds(data, n_folds=n_folds, seed=recipe.seed)
    propensities = np.empty((data.n_decisions, data.n_actions))
    deployed = Deployed(np.empty_like(propensities), np.empty(data.n_decisions, bool))
    for number in range(n_folds):
        if whole:
            learner = recipe.make(device="cpu").fit(data.subset(fold != number))
            own = learner.fitted_policy()
        else:
            propensity, networks = (
                None
                if member is None or isinstance(member, OwnModel | Stack | TreeEnsemble)
                else member.select([number])
                for member in members
            )
            own = replace(policy, networks=networks, propensity=propensity)
        asked, here = data.subset(fold == number), fold[data.decisions().stay] == number
        deployed.probabilities[here], deployed.abstained[here] = own.deployed(asked)
        propensities[here] = own.propensities(asked)
    return deployed, propensities


def _record(candidate: Candidate, log_loss: float | None) -> TrialRecord:
    """The candidate in numbers; one without any weight has none."""
    risk, error = candidate.risk, candidate.std_error
    if candidate.corrected is not None and candidate.corrected_error is not None:
        risk, error = candidate.corrected, candidate.corrected_error
    finite = bool(np.isfinite(risk) and np.isfinite(error))
    return TrialRecord(
        risk=risk if finite else None,
        std_error=error if finite else None,
        sound=candidate.sound and finite,
        log_loss=log_loss,
        matching_factor=candidate.matching_factor,
        effective_size=candidate.effective_size,
        translation=None if np.isnan(candidate.translation) else candidate.translation,
        naive=None if candidate.corrected is None else candidate.risk,
    )
