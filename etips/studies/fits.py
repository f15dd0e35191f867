"""The task of a study: one method learns from one fold and answers what that holds out.

Methods of one fold need the same propensity networks. Training is determined by data, settings and
seed, so a task may take finished stages from another task's folder; without them it finds the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self

from etips.data.trajectories import Trajectories
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import finite
from etips.files.writing import write_file
from etips.learn.learners.catalogue import require_method
from etips.learn.learners.learner import Learner
from etips.learn.learners.recipes import make_learner
from etips.learn.nuisance.propensity import Quality
from etips.learn.training.sharing import Sharing
from etips.models.bundle import Bundle
from etips.policies.policy import FittedPolicy
from etips.results.followed_policies import Followed, as_followed, follow
from etips.results.study_result import FitRecord, PropensityQuality
from etips.results.translation_path import summarize_path
from etips.runs.run import Run, stage_file
from etips.studies.experiment import LOGGING, SUPERVISED, Settings, recipe_of
from etips.studies.fit_records import fit_to_json
from etips.studies.fold_policies import EXTERNAL, save_followed
from etips.studies.folds import Dealing, Part
from etips.studies.study_data import (
    FolderData,
    SimulatedData,
    StudyData,
    data_from_json,
    open_answers,
    open_external,
    open_log,
)
from etips.tasks.task import Json, Work


@dataclass(frozen=True)
class FoldOfStudy:
    """One fold of the data of a study.

    Args:
        data: Of the study.
        dealing: Into folds.
        number: Of the fold, from 0.
    """

    data: StudyData
    dealing: Dealing
    number: int


@dataclass(frozen=True)
class FitTask(Work):
    """Learn from a fold's stays, answer those it holds out, and say how it went.

    Args:
        fold: Which.
        method: A row of the table.
        settings: Of its learner.
        device: auto, cpu or cuda.
        seed: Of its learner.
        turned: Read the wrong way round.
        lends: Keep the finished stages for others.
        lent: By stage of training, the task that has it finished.
        external: Another source, whose decisions its policy answers too.
    """

    kind: ClassVar[str] = "fit-fold"

    fold: FoldOfStudy
    method: str
    settings: Settings
    device: str
    seed: int
    turned: bool = False
    lends: bool = False
    lent: Mapping[str, str] = field(default_factory=dict)
    external: FolderData | None = None

    @property
    def trains_on(self) -> str:
        """The device."""
        return self.device

    @property
    def lenders(self) -> Sequence[str]:
        """Tasks whose networks it begins with."""
        return list(self.lent.values())

    def to_json(self) -> dict[str, object]:
        """As an object that JSON can hold."""
        own = {k: value for k, value in vars(self).items() if k not in ("fold", "external")}
        outside = {} if self.external is None else {"external": self.external.to_json()}
        return {
            **own,
            **outside,
            "settings": dict(self.settings),
            "lent": dict(self.lent),
            "data": self.fold.data.to_json(),
            "dealing": asdict(self.fold.dealing),
            "number": self.fold.number,
        }

    @classmethod
    def from_json(cls, document: Json) -> Self:
        """What `to_json` wrote."""
        values: Any = dict(document)
        if "external" in values:
            values["external"] = FolderData(**values["external"])
        data, dealing = data_from_json(values.pop("data")), Dealing(**values.pop("dealing"))
        return cls(FoldOfStudy(data, dealing, values.pop("number")), **values)

    def run(self, folder: Path, sharing: Sharing | None = None) -> Json:
        """Do it; the findings are a `FitRecord`."""
        study, data = folder.parent, self.fold.data
        log = open_log(data, study)
        part = self.fold.dealing.part(log, self.fold.number)
        held = log.subset(part.held)
        record = FitRecord(n_learned_from=int(part.learn.sum()), n_held_out=held.n_stays)
        if self.method == LOGGING:
            policy = as_followed(open_answers(study)[part.held])
        else:
            stays = self._stays(log, part)
            policy, learner = self._learn(stays, held, folder, sharing)
            record = _describe_fit(record, learner)
        save_followed(policy, folder)
        return fit_to_json(record)

    def _stays(self, log: Trajectories, part: Part) -> Trajectories:
        """Whom it learns from; full supervision is told the labels."""
        if self.method != SUPERVISED:
            return log.subset(part.learn)
        assert isinstance(self.fold.data, SimulatedData)  # Table I has labels
        return self.fold.data.open_labelled().subset(part.learn)

    def _learn(
        self, stays: Trajectories, held: Trajectories, folder: Path, sharing: Sharing | None
    ) -> tuple[Followed, Learner]:
        method = recipe_of(self.method)
        settings = {**_networks_alone(method), **self.settings}
        learner = make_learner(method, settings, device=self.device, seed=self.seed)
        with Run(folder, self._checkpoint_identity) as run:
            for stage, task in self.lent.items():
                _borrow(folder.parent / task, folder, stage)
            learner.fit(stays, run=run, sharing=sharing)
            learned = turn_round(learner.policy_) if self.turned else learner
            policy = follow(learned, held)
            if self.external is not None:
                outside = open_external(self.external, stays.schema)
                save_followed(follow(learned, outside), folder, prefix=EXTERNAL)
            if not self.lends:
                run.clear()
        return policy, learner

    @property
    def _checkpoint_identity(self) -> str:
        """Of the stays learned from and the machine's choice, alike for all that can share."""
        return fingerprint(
            data=self.fold.data.to_json(),
            dealing=self.fold.dealing,
            fold=self.fold.number,
            device=self.device,
            seed=self.seed,
            labels=self.method == SUPERVISED,
        )


def _networks_alone(method: str) -> Settings:
    """What keeps trees out of a study, which compares networks, unless its settings say other."""
    return {"models": "networks"} if "models" in require_method(method).parameters else {}


def turn_round(policy: FittedPolicy) -> FittedPolicy:
    """The policy that takes the action of most predicted loss, as the published code does.

    Outputs are linear in the head, so a head of the other sign turns their order round.
    """
    assert isinstance(policy.networks, Bundle)  # studies compare networks
    own = policy.networks.parameters
    turned = {name: -v if name.startswith("head.") else v for name, v in own.items()}
    return replace(policy, networks=Bundle(policy.networks.network, turned))


def summarize_quality(quality: Quality) -> PropensityQuality:
    """How good fitted propensities are, as results show it."""
    return PropensityQuality(
        log_loss=finite(quality.log_loss),
        accuracy=finite(quality.accuracy),
        calibration_error=finite(quality.calibration_error),
    )


def _describe_fit(record: FitRecord, learner: Learner) -> FitRecord:
    """The record with what the learner says of itself."""
    quality = learner.quality_
    return replace(
        record,
        quality=None if quality is None else summarize_quality(quality),
        support=learner.support_,
        clipped_share=learner.clipped_share_,
        path=summarize_path(learner.path_),
    )


def _borrow(lender: Path, folder: Path, stage: str) -> None:
    """Take over a finished stage, unless it is not there: then it is trained here."""
    theirs, own = stage_file(lender, stage), stage_file(folder, stage)
    if theirs.is_file() and not own.exists():
        write_file(own, theirs.read_bytes())
