"""The task of a study that fits what its policies are evaluated with."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from torch import Tensor

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.files.fingerprint import fingerprint
from etips.learn.fitting.driver import drive
from etips.learn.fitting.prepare import Prepared, choose_device, prepare
from etips.learn.fitting.stages import Training
from etips.learn.learners.direct import DirectMethod
from etips.learn.learners.recipes import make_learner
from etips.learn.nuisance.balancing import rebalance_table
from etips.learn.nuisance.outcome import fit_outcome, is_share
from etips.learn.nuisance.propensity import FittedPropensity, fit_propensity
from etips.learn.training.sharing import Sharing
from etips.models.answers import BATCH_SIZE, answer_decisions, outputs_at
from etips.models.batches import Batch, step_tensors
from etips.models.bundle import Bundle
from etips.models.encoders.registry import as_encoder
from etips.runs.run import Run
from etips.studies.experiment import EVALUATOR, Settings
from etips.studies.folds import Dealing
from etips.studies.study_data import StudyData, data_from_json, open_log, save_array
from etips.tasks.task import Json, Work

PREDICTED, PROPENSITIES = "predicted.npy", "propensities.npy"
"""Arrays that the task leaves: predicted losses, and propensities where they are not known."""

BALANCE = "balance"
"""What it finds, where it fits propensities: whether they were balanced, in words."""


@dataclass(frozen=True)
class EvaluationTask(Work):
    """Fit networks that policies are evaluated with, none asked about a stay it learned from.

    Table I: predicted losses of the test part, from all that is not the test part; its propensities
    are known. Table II: propensities and predicted losses of each fold, from the other folds.

    Args:
        data: Of the study.
        dealing: Into folds.
        settings: Of the networks.
        device: auto, cpu or cuda.
        seed: Of the networks.
    """

    kind: ClassVar[str] = "fit-evaluation"

    data: StudyData
    dealing: Dealing
    settings: Settings
    device: str
    seed: int

    @property
    def trains_on(self) -> str:
        """The device."""
        return self.device

    def to_json(self) -> dict[str, object]:
        """As an object that JSON can hold."""
        return {
            **vars(self),
            "settings": dict(self.settings),
            "data": self.data.to_json(),
            "dealing": asdict(self.dealing),
        }

    @classmethod
    def from_json(cls, document: Json) -> Self:
        """What `to_json` wrote."""
        values: Any = dict(document)
        data, dealing = data_from_json(values.pop("data")), Dealing(**values.pop("dealing"))
        return cls(data, dealing, **values)

    def run(self, folder: Path, sharing: Sharing | None = None) -> Json:
        """Do it; arrays are left, and what balancing did to propensities is found."""
        found: dict[str, object] = {}
        log = open_log(self.data, folder.parent)
        learner = make_learner(EVALUATOR, self.settings, device=self.device)
        assert isinstance(learner, DirectMethod)
        training, encoder = learner.training.with_seed(self.seed), as_encoder(learner.encoder)
        apart = self.dealing.has_test_part
        tested = self.dealing.part(log, 0).held
        with Run(folder, self._checkpoint_identity) as run:
            prepared = self._prepare(log.subset(~tested) if apart else log, training)
            asked = fit_outcome(prepared, encoder, training.outcome, seed=self.seed)
            outcome = drive(asked, checkpoints=run, sharing=sharing)
            predicted = outcome.expected
            if apart:
                assert isinstance(outcome.bundle, Bundle)  # studies compare networks
                predicted = _predict(outcome.bundle, prepared, log.subset(tested))
            else:
                networks = fit_propensity(
                    prepared,
                    encoder,
                    training.propensity,
                    seed=self.seed,
                    calibrate=training.calibrate,
                )
                likely = drive(networks, checkpoints=run, sharing=sharing)
                table, balance = _balanced(prepared, likely, training)
                save_array(folder / PROPENSITIES, table)
                found[BALANCE] = balance
            save_array(folder / PREDICTED, predicted)
            run.clear()
        return found

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

    @property
    def _checkpoint_identity(self) -> str:
        return fingerprint(
            data=self.data.to_json(), dealing=self.dealing, device=self.device, seed=self.seed
        )


def _balanced(
    prepared: Prepared, fitted: FittedPropensity, training: Training
) -> tuple[Floats, str]:
    """Propensities out of fold, balanced where that helps held-out stays, (n, K); and in words."""
    table = np.asarray(np.exp(fitted.log_probabilities))
    if not training.balance:
        return table, "not balanced, as was asked"
    rebalanced = rebalance_table(prepared.data, table, prepared.folds.fold)
    if rebalanced is None:
        return table, "left as fitted: nothing to balance them by"
    return rebalanced.propensities, rebalanced.sentence


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
