"""The tasks of a study, in waves, and what they leave: data, an evaluation's models, policies.

Methods of one fold need the same propensity networks. Training is determined by data, settings and
seed, so a task may take finished stages from another task's folder; without them it finds the same.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from etips.data.decisions import Bools, Floats
from etips.data.trajectories import Trajectories
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import finite
from etips.files.writing import write_file
from etips.learn.fitting.prepare import Prepared, choose_device, prepare
from etips.learn.fitting.stages import Training
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.catalogue import find_method, require_method
from etips.learn.learners.direct import DirectMethod
from etips.learn.learners.learner import Learner
from etips.learn.learners.recipes import make_learner
from etips.learn.nuisance.outcome import fit_outcome, is_share
from etips.learn.nuisance.propensity import fit_propensity
from etips.models.answers import BATCH_SIZE, answer_decisions, outputs_at
from etips.models.batches import Batch, step_tensors
from etips.models.bundle import Bundle
from etips.models.encoders.registry import as_encoder
from etips.policies.deployed import Deployed
from etips.policies.policy import FittedPolicy
from etips.results.followed_policies import Followed, as_followed, follow
from etips.results.records import PathCandidate
from etips.results.study_result import FitRecord, PropensityQuality
from etips.results.summaries import summarize_path
from etips.runs.run import Run, stage_file
from etips.runs.tasks import Json, Task
from etips.studies.experiment import (
    EVALUATOR,
    LOGGING,
    SUPERVISED,
    Experiment,
    Settings,
    recipe_of,
)
from etips.studies.fit_work import stage_works
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

EVALUATION = "evaluation"
"""Name of the task that fits what policies are evaluated with."""

PREDICTED, PROPENSITIES = "predicted.npy", "propensities.npy"
"""Arrays that it leaves: predicted losses, and propensities where they are not known."""

POLICY, DRAWN, ABSTAINED = "policy.npy", "drawn.npy", "abstained.npy"
"""What a task leaves of its policy, where it was held out: what it does, the probabilities that it
would draw from, and where it leaves the decision to the clinicians."""

EXTERNAL = "external-"
"""Before the names of the same files about the decisions of another source."""

_NOTHING, _THE_DATA = 0.1, 2.0  # in passes of a network over the stays, as `fit_cost` counts


def make_plan(
    experiment: Experiment, data: StudyData, *, device: str, external: FolderData | None = None
) -> list[list[Task]]:
    """The waves of a study: a wave needs what the waves before it left."""
    seed, methods = experiment.seed, experiment.methods
    dealing = Dealing(experiment.table, experiment.folds, seed)
    judging = Task(
        EVALUATION,
        EvaluationTask(data, dealing, experiment.evaluation, device=device, seed=seed),
        fit_cost(EVALUATOR, experiment.evaluation, ("propensity",) * dealing.has_test_part),
        device,
    )
    waves = [[Task(DATA, DataTask(data), _THE_DATA)], [judging], [], []]
    n_stays = data.n if isinstance(data, SimulatedData) else None
    for method, settings in methods.items():
        lent, entry = lent_stages(methods, method), find_method(method)
        cost = fit_cost(method, settings, lent, n_stays)
        for fold in range(experiment.folds):
            lenders = {stage: task_name(lender, fold) for stage, lender in lent.items()}
            work = FitTask(
                data,
                dealing,
                fold,
                method,
                settings,
                device=device,
                seed=seed,
                turned=method in experiment.turned,
                lends=entry is not None and bool(entry.lends),
                lent=lenders,
                external=external,
            )
            task = Task(task_name(method, fold), work, cost, device, tuple(lenders.values()))
            waves[1 + _rank(method)].append(task)
    # The longest of a wave come first, so that no worker waits for one of them at its end.
    return [sorted(wave, key=lambda task: -task.cost) for wave in waves if wave]


def task_name(method: str, fold: int) -> str:
    """Of a method's task on a fold."""
    return f"{method}-fold-{fold + 1}"


def fit_cost(
    method: str, settings: Settings, lent: Container[str], n_stays: int | None = None
) -> float:
    """How long a fit usually takes, in passes of a network over the stays.

    Args:
        lent: Stages that it takes over.
        n_stays: How many it learns from, if that is known.
    """
    works = stage_works(recipe_of(method), settings, n_stays)
    return _NOTHING + sum(work.total for stage, work in works.items() if stage not in lent)


def lent_stages(methods: Mapping[str, Settings], method: str) -> dict[str, str]:
    """Stages of training that a method can take over, and from which method.

    Propensity networks fitted alike are the same for every method, and so are predicted losses.
    """
    lent: dict[str, str] = {}
    entry = find_method(method)
    if method == SUPERVISED or entry is None:
        return lent
    for lender in sorted(methods, key=_rank):
        if lender == SUPERVISED or find_method(lender) is None or _rank(lender) >= _rank(method):
            continue
        for stage in require_method(lender).lends:
            made = [_made_by(stage, name, methods[name]) for name in (lender, method)]
            if stage in entry.stages and made[0] == made[1]:
                lent[stage] = lender
    return lent


def _made_by(stage: str, method: str, settings: Settings) -> tuple[object, ...]:
    """What decides how a method trains a stage."""
    params = make_learner(method, settings, device="cpu").get_params(deep=False)
    training = params["training"]
    assert isinstance(training, Training)
    shape = params["encoder"], training.n_folds, training.earlier_actions
    if stage == "propensity":
        return *shape, training.propensity
    outcome = params.get("interaction", True), params.get("horizon", "decision"), training.outcome
    return *shape, training.propensity, *outcome


def _rank(method: str) -> int:
    """In which wave a method is fitted: lenders of propensities, then other lenders, then the rest.

    What takes no time goes with the first; full supervision, which no other method needs, with the
    next.
    """
    known = find_method(method)
    if method == SUPERVISED:
        return 1
    if known is None or not known.stages or "propensity" in known.lends:
        return 0
    return 1 if known.lends else 2


@dataclass(frozen=True)
class DataTask:
    """Train the logging policy of labelled samples; of other data, check that they open."""

    data: StudyData

    def run(self, folder: Path) -> Json:
        """Do it."""
        if isinstance(self.data, SimulatedData) and self.data.has_labels:
            return {"notes": self.data.make_answers(folder)}
        open_log(self.data, folder.parent)
        return {"notes": {}}


@dataclass(frozen=True)
class EvaluationTask:
    """Fit networks that policies are evaluated with, none asked about a stay it learned from.

    Table I: predicted losses of the test part, from all that is not the test part; its propensities
    are known. Table II: propensities and predicted losses of each fold, from the other folds.
    """

    data: StudyData
    dealing: Dealing
    settings: Settings
    device: str
    seed: int

    def run(self, folder: Path) -> Json:
        """Do it; arrays are left."""
        log, dealing = open_log(self.data, folder.parent), self.dealing
        learner = make_learner(EVALUATOR, self.settings, device=self.device)
        assert isinstance(learner, DirectMethod)
        training, encoder = learner.training.with_seed(self.seed), as_encoder(learner.encoder)
        apart, tested = dealing.has_test_part, dealing.part(log, 0).held
        prepared = prepare(  # folds of its own outside the test part, or those of the study
            log.subset(~tested) if apart else log,
            n_folds=max(training.n_folds, 2) if apart else dealing.folds,
            seed=self.seed if apart else dealing.seed,
            device=choose_device(training.device),
            earlier_actions=training.earlier_actions,
        )
        identity = fingerprint(data=self.data, dealing=dealing, device=self.device, seed=self.seed)
        with Run(folder, identity) as run:
            trainer = Trainer(checkpoints=run)
            outcome = fit_outcome(prepared, encoder, training.outcome, trainer, seed=self.seed)
            predicted = outcome.expected
            if apart:
                predicted = _predict(outcome.bundle, prepared, log.subset(tested))
            else:
                likely = fit_propensity(
                    prepared,
                    encoder,
                    training.propensity,
                    trainer,
                    seed=self.seed,
                    calibrate=training.calibrate,
                )
                save_array(folder / PROPENSITIES, np.exp(likely.log_probabilities))
            save_array(folder / PREDICTED, predicted)
            run.clear()
        return {}


def _predict(networks: Bundle, prepared: Prepared, asked: Trajectories) -> Floats:
    """Loss of every action at decisions outside all folds, the networks' mean, shape (n, K)."""
    assert is_share(prepared.data)  # a label is right or wrong
    steps = step_tensors(
        prepared.scaler.transform(asked),
        earlier_actions=prepared.steps.previous is not None,
        device=networks.device,
    )

    def ask(batch: Batch, _: int) -> tuple[Tensor, ...]:
        return (outputs_at(networks, batch, steps).double().sigmoid().mean(0),)

    (predicted,) = answer_decisions(steps, ask, batch_size=BATCH_SIZE)
    return predicted.cpu().numpy()


@dataclass(frozen=True)
class FitTask:
    """Learn from a fold's stays, answer those it holds out, and report how it went.

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
        stays = log
        if self.method == SUPERVISED:  # the labels of Table I
            assert isinstance(self.data, SimulatedData)
            stays = self.data.open_labelled()
        learner = self._learn(stays.subset(part.learn), held, folder)
        quality = learner.quality_
        shown = ("log_loss", "accuracy", "calibration_error")
        return asdict(
            replace(
                record,
                quality=None
                if quality is None
                else PropensityQuality(**{name: finite(getattr(quality, name)) for name in shown}),
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
    deployed, drawn, abstained = (
        load_array(folder / f"{prefix}{name}") for name in (POLICY, DRAWN, ABSTAINED)
    )
    return _followed(deployed, drawn, abstained != 0)


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
