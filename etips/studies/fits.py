"""The work of a study: one method on one fold, and the networks that policies are evaluated with.

Methods of one fold need the same propensity networks. Training is determined by data, settings and
seed, so a task may take finished stages from another task's folder; without them it finds the same.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import canonical, finite
from etips.files.writing import write_file
from etips.learn.fitting.driver import drive
from etips.learn.fitting.prepare import Prepared, choose_device, prepare
from etips.learn.learners.learner import Learner
from etips.learn.learners.recipes import make_learner
from etips.learn.nuisance.outcome import fit_outcome, is_share
from etips.learn.nuisance.propensity import fit_propensity
from etips.learn.training.sharing import Sharing
from etips.models.answers import BATCH_SIZE, answer_decisions, outputs_at
from etips.models.batches import Batch, step_tensors
from etips.models.bundle import Bundle
from etips.models.encoders.registry import as_encoder
from etips.policies.policy import FittedPolicy
from etips.results.translation_path import path_of
from etips.runs.path_file import path_to_json
from etips.runs.run import CHECKPOINT, Run
from etips.studies.experiment import EVALUATOR, LOGGING, SUPERVISED, recipe_of
from etips.studies.folds import find_part
from etips.studies.study_data import (
    SimulatedData,
    StudyData,
    data_from_json,
    open_answers,
    open_log,
    save_array,
)
from etips.tasks.task import other_work

POLICY, PREDICTED, PROPENSITIES = "policy.npy", "predicted.npy", "propensities.npy"
"""Arrays that tasks leave: held-out probabilities, predicted losses, propensities."""

_WORK = "work.json"


def fit_fold(
    arguments: Mapping[str, Any], folder: Path, sharing: Sharing | None = None
) -> dict[str, Any]:
    """Work: learn from a fold's stays, answer those it holds out, and say how it went.

    Arguments: source, part (of `find_part`), method, settings, turned, device, seed, `lent`
    (finished stages of training, by the task that has them), and `lends` (keep them for others).
    """
    _claim(folder, arguments)
    study, method = folder.parent, arguments["method"]
    data = data_from_json(arguments["source"])
    log = open_log(data, study)
    part = find_part(log, **arguments["part"])
    held = log.subset(part.held)
    found: dict[str, Any] = {"n_learnt_from": int(part.learn.sum()), "n_held_out": held.n_stays}
    if method == LOGGING:
        probabilities = open_answers(study)[part.held]
    else:
        shown = _labelled(data) if method == SUPERVISED else log
        probabilities, learnt = _learn(shown.subset(part.learn), held, arguments, folder, sharing)
        found |= learnt
    save_array(folder / POLICY, probabilities)
    return found


def fit_evaluation(
    arguments: Mapping[str, Any], folder: Path, sharing: Sharing | None = None
) -> dict[str, Any]:
    """Work: networks that policies are evaluated with, none asked about a stay it learnt from.

    Table I: predicted losses of the test part, from all that is not the test part; its propensities
    are known. Table II: propensities and predicted losses of each fold, from the other folds.
    """
    _claim(folder, arguments)
    log = open_log(data_from_json(arguments["source"]), folder.parent)
    learner: Any = make_learner(EVALUATOR, arguments["settings"], device=arguments["device"])
    seed, dealt = arguments["seed"], arguments["part"]
    training, encoder = learner.training.with_seed(seed), as_encoder(learner.encoder)
    tested = find_part(log, **dealt, fold=0)
    apart = dealt["table"] == "table1"
    with Run(folder, _identity(arguments)) as run:
        prepared = prepare(
            log.subset(~tested.held) if apart else log,
            n_folds=max(training.n_folds, 2) if apart else dealt["folds"],
            seed=seed if apart else dealt["seed"],
            device=choose_device(training.device),
            earlier_actions=training.earlier_actions,
        )
        losses = fit_outcome(prepared, encoder, training.outcome, seed=seed)
        outcome = drive(losses, checkpoints=run, sharing=sharing)
        predicted = outcome.expected
        quality = None
        if apart:
            predicted = _predict(outcome.bundle, prepared, log.subset(tested.held))
        else:
            networks = fit_propensity(
                prepared, encoder, training.propensity, seed=seed, calibrate=training.calibrate
            )
            likely = drive(networks, checkpoints=run, sharing=sharing)
            save_array(folder / PROPENSITIES, np.exp(likely.log_probabilities))
            quality = vars(likely.quality)
        save_array(folder / PREDICTED, predicted)
        run.clear()
    return {"quality": quality}


def _labelled(data: StudyData) -> Trajectories:
    assert isinstance(data, SimulatedData)  # Table I has labels
    return data.open_labelled()


def _learn(
    stays: Trajectories,
    held: Trajectories,
    arguments: Mapping[str, Any],
    folder: Path,
    sharing: Sharing | None,
) -> tuple[Floats, dict[str, Any]]:
    learner = make_learner(
        recipe_of(arguments["method"]),
        arguments["settings"],
        device=arguments["device"],
        seed=arguments["seed"],
    )
    with Run(folder, _identity(arguments)) as run:
        for stage, task in arguments["lent"].items():
            _borrow(folder.parent / task, folder, stage)
        learner.fit(stays, run=run, sharing=sharing)
        policy = turn_round(learner.policy_) if arguments["turned"] else learner
        probabilities = policy.predict_proba(held)
        if not arguments["lends"]:
            run.clear()
    return probabilities, _findings(learner)


def turn_round(policy: FittedPolicy) -> FittedPolicy:
    """The policy that takes the action of most predicted loss, as the published code does.

    Outputs are linear in the head, so a head of the other sign turns their order round.
    """
    assert policy.networks is not None
    own = policy.networks.parameters
    turned = {name: -v if name.startswith("head.") else v for name, v in own.items()}
    return replace(policy, networks=Bundle(policy.networks.network, turned))


def _findings(learner: Learner) -> dict[str, Any]:
    """What a learner says of itself, as JSON holds it."""
    quality = learner.quality_
    return {
        "path": path_to_json(path_of(learner)),
        "quality": None if quality is None else {k: finite(v) for k, v in vars(quality).items()},
        "support": learner.support_,
        "clipped_share": learner.clipped_share_,
    }


def _predict(networks: Bundle, prepared: Prepared, asked: Trajectories) -> Floats:
    """Loss of every action at decisions nobody learnt from, the networks' mean, shape (n, K)."""
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


def _identity(arguments: Mapping[str, Any]) -> str:
    """Of the stays learnt from and the machine's choice, alike for all methods that can share."""
    told = arguments.get("method") == SUPERVISED
    kept = {name: arguments[name] for name in ("source", "part", "device", "seed")}
    return fingerprint(**kept, labels=told)


def _claim(folder: Path, arguments: Mapping[str, Any]) -> None:
    """Refuse a folder in which other work was begun, before its checkpoints are taken up."""
    path, own = folder / _WORK, canonical({"work": fingerprint(arguments=dict(arguments))})
    if not path.is_file():
        write_file(path, own)
    elif path.read_bytes() != own:
        raise other_work(folder)


def _borrow(lender: Path, folder: Path, stage: str) -> None:
    """Take over a finished stage, unless it is not there: then it is trained here."""
    place = Path(CHECKPOINT) / f"{stage}.safetensors"
    if (lender / place).is_file() and not (folder / place).exists():
        write_file(folder / place, (lender / place).read_bytes())
