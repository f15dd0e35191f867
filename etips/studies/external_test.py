"""The policies of a study on another source: what they are worth there, by its own decisions."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.results.evaluate import assess_policies
from etips.results.evaluation_log import Models, make_log
from etips.results.results import MethodResult
from etips.results.summaries import summarize_data
from etips.studies.experiment import Experiment
from etips.studies.fold_policies import EXTERNAL, load_followed, mix_folds
from etips.studies.plan import task_name
from etips.studies.study_data import FolderData, open_external

COLUMNS = ("external risk", "external change", "external verdict")
"""What a table says of each policy there."""


@dataclass(frozen=True, eq=False)
class ExternalTest:
    """What the policies come to on the other source.

    Args:
        data: Its stays, read as those of the study.
        assessed: Each method there, by name: one of its folds' policies, drawn at random.
    """

    data: Trajectories
    assessed: Mapping[str, MethodResult]

    @classmethod
    def of(
        cls, experiment: Experiment, source: FolderData | None, tasks: Path, like: Schema
    ) -> Self | None:
        """Judge what the tasks left; None where there is no other source.

        Args:
            experiment: What was studied.
            source: The other source.
            tasks: Folder with one folder a task.
            like: Schema of the study's own data.
        """
        if source is None:
            return None
        data = open_external(source, like)
        made = make_log({}, data, Models(seed=experiment.seed))
        pooled = {
            method: mix_folds(
                [
                    load_followed(tasks / task_name(method, fold), prefix=EXTERNAL)
                    for fold in range(experiment.folds)
                ],
                made.log.propensities,
            )
            for method in experiment.methods
        }
        judged = assess_policies(pooled, made.log, data, notes=made.notes)
        return cls(data, {own.name: own for own in judged})

    def cells(self, method: str) -> list[str]:
        """One for each of `COLUMNS`."""
        own = self.assessed[method]
        head, gain = own.estimates[0], own.gain
        risk = _limits(head.risk, head.low, head.high, "")
        change = "-" if gain is None else _limits(gain.difference, gain.low, gain.high, "+")
        return [risk, change, str(own.verdict)]

    @property
    def note(self) -> str:
        """What a reader must know of the columns."""
        about = summarize_data(self.data)
        n = "" if about.n_decisions is None else f" {about.n_decisions:,} decisions,"
        loss = "hidden" if about.mean_loss is None else f"{about.mean_loss:.4f}"
        where = self.data.schema.provenance.get("cohort", "another source")
        return (
            f" External: {where},{n} mean logged loss {loss}; risk of one of the folds' policies "
            "drawn at random and its change against the clinicians there, with 95 % limits, by "
            "propensities fitted there and doses in the classes of the data above."
        )


def _limits(value: float | None, low: float | None, high: float | None, sign: str) -> str:
    if value is None or low is None or high is None:
        return "-"
    return f"{value:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"
