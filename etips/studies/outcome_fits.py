"""The task of a study that fits what its policies are evaluated with."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from torch import Tensor

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.files.fingerprint import fingerprint
from etips.learn.fitting.prepare import Prepared, choose_device, prepare
from etips.learn.fitting.stages import Training
from etips.learn.fitting.trainer import Trainer
from etips.learn.learners.direct import DirectMethod
from etips.learn.learners.recipes import make_learner
from etips.learn.nuisance.outcome import fit_outcome, is_share
from etips.learn.nuisance.propensity import fit_propensity
from etips.models.answers import BATCH_SIZE, answer_decisions, outputs_at
from etips.models.batches import Batch, step_tensors
from etips.models.bundle import Bundle
from etips.models.encoders.registry import as_encoder
from etips.runs.run import Run
from etips.runs.tasks import Json
from etips.studies.experiment import EVALUATOR, Settings
from etips.studies.study_data import Dealing, StudyData, open_log, save_array

PREDICTED, PROPENSITIES = "predicted.npy", "propensities.npy"
"""Arrays that the task leaves: predicted losses, and propensities where they are not known."""


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
        log = open_log(self.data, folder.parent)
        learner = make_learner(EVALUATOR, self.settings, device=self.device)
        assert isinstance(learner, DirectMethod)
        training, encoder = learner.training.with_seed(self.seed), as_encoder(learner.encoder)
        apart = self.dealing.has_test_part
        tested = self.dealing.part(log, 0).held
        identity = fingerprint(
            data=self.data, dealing=self.dealing, device=self.device, seed=self.seed
        )
        with Run(folder, identity) as run:
            prepared = self._prepare(log.subset(~tested) if apart else log, training)
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

    def _prepare(self, stays: Trajectories, training: Training) -> Prepared:
        """Stays cut into folds: of their own outside the test part, else those of the study."""
        apart = self.dealing.has_test_part
        return prepare(
            stays,
            n_folds=max(training.n_folds, 2) if apart else self.dealing.folds,
            seed=self.seed if apart else self.dealing.seed,
            device=choose_device(training.device),
            earlier_actions=training.earlier_actions,
        )


def _predict(networks: Bundle, prepared: Prepared, asked: Trajectories) -> Floats:
    """Loss of every action at decisions nobody learned from, the networks' mean, shape (n, K)."""
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
