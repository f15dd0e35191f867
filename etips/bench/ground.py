"""The ground of a contest: a world opened at a seed, with what policies are judged by there."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from etips.bench.bench_worlds import Arena, without_propensities
from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.errors import FileError
from etips.evaluation.log import Log
from etips.files.writing import write_file
from etips.learn.learners.direct import DirectMethod
from etips.learn.learners.recipes import make_learner
from etips.learn.training.sharing import Sharing
from etips.machine import still_products
from etips.results.evaluation_log import Models, make_log
from etips.studies.experiment import EVALUATOR, Settings
from etips.tasks.task import Json, Work

_LOG = "log.npz"
_NUMBERS = ("n_actions", "propensity_floor", "known", "lag")


@dataclass(frozen=True)
class GroundTask(Work):
    """Make what all methods of a world and seed share: data, and the log that they are judged by.

    Args:
        arena: Which.
        settings: Of the networks that policies are evaluated with; the usual ones if empty.
        device: auto, cpu or cuda.
    """

    kind: ClassVar[str] = "bench-ground"

    arena: Arena
    settings: Settings
    device: str

    @property
    def trains_on(self) -> str:
        """The device."""
        return self.device

    def to_json(self) -> dict[str, object]:
        """As an object that JSON can hold."""
        return {
            "arena": self.arena.to_json(),
            "settings": dict(self.settings),
            "device": self.device,
        }

    @classmethod
    def from_json(cls, document: Json) -> Self:
        """What `to_json` wrote."""
        values: Any = dict(document)
        return cls(Arena.from_json(values.pop("arena")), **values)

    def run(self, folder: Path, _: Sharing | None = None) -> Json:
        """Do it; the findings are what is possible in this world."""
        self.arena.prepare(folder)
        test = self.arena.open(folder).test
        by_design = self.arena.own.measure == "trial"
        learner = make_learner(EVALUATOR, self.settings, device=self.device, seed=self.arena.seed)
        assert isinstance(learner, DirectMethod)
        models = Models(encoder=learner.encoder, training=learner.training, seed=self.arena.seed)
        with still_products():
            made = make_log({}, test if by_design else without_propensities(test), models)
        save_log(made.log, folder)
        return possible(self.arena, test)


def possible(arena: Arena, test: Trajectories) -> dict[str, object]:
    """True risk of the clinicians and of the best policy, and mortality under the clinicians."""
    nobody = np.zeros((1, test.n_actions))
    stay = arena.stay_outcome(lambda asked: np.repeat(nobody, asked.n_decisions, axis=0))
    if test.truth is None:
        done = float(test.logged_loss.mean())
        return {"clinicians": done, "best": None, "clinicians_stay": stay}
    expected = test.true_expected_loss()
    return {
        "clinicians": test.true_risk(test.true_logging()),
        "best": float(expected.min(axis=1).mean()),
        "clinicians_stay": stay,
    }


def save_log(log: Log, folder: Path) -> None:
    """Write a log as arrays; nothing is pickled, and who did its work is left out."""
    arrays: dict[str, NDArray[Any]] = {}
    for own in fields(Log):
        value = getattr(log, own.name)
        if own.init and isinstance(value, np.ndarray | int | float):
            arrays[own.name] = np.asarray(value)
    write_file(folder / _LOG, lambda file: np.savez(file, allow_pickle=False, **arrays))


def load_log(folder: Path) -> Log:
    """Read what `save_log` wrote."""
    path = folder / _LOG
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays: dict[str, Floats] = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, KeyError) as error:
        fix = "Remove the folder it is in, and run the bench again."
        raise FileError(str(path), "cannot be read", fix=fix) from error
    values: Any = {name: v.item() if name in _NUMBERS else v for name, v in arrays.items()}
    return Log(**values)
