"""The task of a study that lets one method learn from a fold, and what it leaves of its policy.

Methods of one fold need the same propensity networks. Training is determined by data, settings and
seed, so a task may take finished stages from another task's folder; without them it finds the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from etips.data.decisions import Bools, Floats
from etips.data.trajectories import Trajectories
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import finite
from etips.files.writing import write_file
from etips.learn.learners.catalogue import require_method
from etips.learn.learners.learner import Learner
from etips.learn.learners.recipes import make_learner
from etips.models.bundle import Bundle
from etips.policies.deployed import Deployed
from etips.policies.policy import FittedPolicy
from etips.results.followed_policies import Followed, as_followed, follow
from etips.results.records import PathCandidate
from etips.results.study_result import FitRecord, PropensityQuality
from etips.results.summaries import summarize_path
from etips.runs.run import Run, stage_file
from etips.runs.tasks import Json
from etips.studies.experiment import LOGGING, SUPERVISED, Settings, recipe_of
from etips.studies.study_data import (
    DATA,
    Dealing,
    FolderData,
    SimulatedData,
    StudyData,
    load_answers,
    load_array,
    open_external,
    open_log,
    save_array,
)

POLICY, DRAWN, ABSTAINED = "policy.npy", "drawn.npy", "abstained.npy"
"""What a task leaves of its policy, where it was held out: what it does, the probabilities that it
would draw from, and where it leaves the decision to the clinicians."""

EXTERNAL = "external-"
"""Before the names of the same files about the decisions of another source."""


@dataclass(frozen=True)
class FitTask:
    """Learn from a fold's stays, answer those it holds out, and say how it went.

    Args:
        fold: Number of the fold, from 0.
        method: A row of the table.
        turned: Read the wrong way round.
        lends: Keep the finished stages for others.
        lent: By stage of training, the task that has it finished.
        external: Another source, whose decisions its policy answers too.
    """

    data: StudyData
    dealing: Dealing
    fold: int
    method: str
    settings: Settings
    device: str
    seed: int
    turned: bool = False
    lends: bool = False
    lent: Mapping[str, str] = field(default_factory=dict)
    external: FolderData | None = None

    def run(self, folder: Path) -> Json:
        """Do it; the findings are a `FitRecord`."""
        study = folder.parent
        log = open_log(self.data, study)
        part = self.dealing.part(log, self.fold)
        held = log.subset(part.held)
        record = FitRecord(n_learned_from=int(part.learn.sum()), n_held_out=held.n_stays)
        if self.method == LOGGING:
            answers = load_answers(study / DATA).probabilities
            save_followed(as_followed(answers[part.held]), folder)
            return asdict(record)
        stays = log.subset(part.learn)
        if self.method == SUPERVISED:  # the labels of Table I
            assert isinstance(self.data, SimulatedData)
            stays = self.data.open_labelled().subset(part.learn)
        learner = self._learn(stays, held, folder)
        quality = learner.quality_
        return asdict(
            replace(
                record,
                quality=None
                if quality is None
                else PropensityQuality(
                    log_loss=finite(quality.log_loss),
                    accuracy=finite(quality.accuracy),
                    calibration_error=finite(quality.calibration_error),
                ),
                support=learner.support_,
                clipped_share=learner.clipped_share_,
                path=summarize_path(learner.path_),
            )
        )

    def _learn(self, stays: Trajectories, held: Trajectories, folder: Path) -> Learner:
        method = recipe_of(self.method)
        # A study compares networks, unless its settings say otherwise.
        trees = "models" in require_method(method).parameters
        settings = {**({"models": "networks"} if trees else {}), **self.settings}
        learner = make_learner(method, settings, device=self.device, seed=self.seed)
        identity = fingerprint(  # alike for all that can share stages
            data=self.data,
            dealing=self.dealing,
            fold=self.fold,
            device=self.device,
            seed=self.seed,
            labels=self.method == SUPERVISED,
        )
        with Run(folder, identity) as run:
            for stage, task in self.lent.items():
                theirs, own = stage_file(folder.parent / task, stage), stage_file(folder, stage)
                if theirs.is_file() and not own.exists():
                    write_file(own, theirs.read_bytes())
            learner.fit(stays, run=run)
            policy = turn_round(learner.policy_) if self.turned else learner
            save_followed(follow(policy, held), folder)
            if self.external is not None:
                outside = open_external(self.external, stays.schema)
                save_followed(follow(policy, outside), folder, prefix=EXTERNAL)
            if not self.lends:
                run.clear()
        return learner


def fit_record(findings: Json) -> FitRecord:
    """What a `FitTask` found."""
    values: Any = dict(findings)
    quality, path = values.pop("quality"), values.pop("path")
    return FitRecord(
        quality=None if quality is None else PropensityQuality(**quality),
        path=tuple(PathCandidate(**candidate) for candidate in path),
        **values,
    )


def turn_round(policy: FittedPolicy) -> FittedPolicy:
    """The policy that takes the action of most predicted loss, as the published code does.

    Outputs are linear in the head, so a head of the other sign turns their order round.
    """
    assert isinstance(policy.networks, Bundle)  # studies compare networks
    own = policy.networks.parameters
    turned = {name: -v if name.startswith("head.") else v for name, v in own.items()}
    return replace(policy, networks=Bundle(policy.networks.network, turned))


def save_followed(policy: Followed, folder: Path, *, prefix: str = "") -> None:
    """Write what a fold's policy does at the decisions it was held out from."""
    drawn = policy.drawn or policy.deployed
    save_array(folder / f"{prefix}{POLICY}", policy.deployed.probabilities)
    save_array(folder / f"{prefix}{DRAWN}", drawn.probabilities)
    save_array(folder / f"{prefix}{ABSTAINED}", policy.deployed.abstained.astype(np.float64))


def load_followed(folder: Path, *, prefix: str = "") -> Followed:
    """Read what `save_followed` wrote."""
    abstained = load_array(folder / f"{prefix}{ABSTAINED}") != 0
    deployed, drawn = (load_array(folder / f"{prefix}{name}") for name in (POLICY, DRAWN))
    return _followed(deployed, drawn, abstained)


def mix_folds(policies: Sequence[Followed], clinicians: Floats | None) -> Followed:
    """One of the folds' policies, drawn at random: its risk is the mean of their risks.

    It abstains where all of them do; where only some do, those do as the clinicians would.

    Args:
        policies: All about the same decisions.
        clinicians: Propensity of every action, shape (n_decisions, n_actions); if it is not known,
            what each policy takes it to be.
    """

    def mean(parts: Sequence[Deployed]) -> Floats:
        each = [
            own.probabilities if clinicians is None else own.left_to(clinicians) for own in parts
        ]
        return np.asarray(np.mean(each, axis=0))

    return _followed(
        mean([own.deployed for own in policies]),
        mean([own.drawn or own.deployed for own in policies]),
        np.all([own.deployed.abstained for own in policies], axis=0),
    )


def join_folds(policies: Sequence[Followed], folds: Sequence[Bools]) -> Followed:
    """Every decision answered by the policy of the fold that held it out.

    Args:
        policies: One a fold, about the decisions that it held out.
        folds: Which decisions those are, shape (n_decisions,) each.
    """
    n, n_actions = len(folds[0]), policies[0].deployed.probabilities.shape[1]
    deployed, drawn, abstained = np.empty((n, n_actions)), np.empty((n, n_actions)), np.empty(n)
    for policy, mask in zip(policies, folds, strict=True):
        deployed[mask] = policy.deployed.probabilities
        drawn[mask] = (policy.drawn or policy.deployed).probabilities
        abstained[mask] = policy.deployed.abstained
    return _followed(deployed, drawn, abstained != 0)


def _followed(deployed: Floats, drawn: Floats, abstained: Bools) -> Followed:
    same = np.array_equal(deployed, drawn)
    return Followed(Deployed(deployed, abstained), None if same else Deployed(drawn, abstained))
