"""All that the service needs of a run and its data, opened once at the start."""

from dataclasses import dataclass
from pathlib import Path

from etips.data.trajectories import Trajectories
from etips.errors import FileError
from etips.results.parsing import read_results
from etips.runs.folder import RunFolder
from etips.serve.advice import Advisor
from etips.serve.fields import Form
from etips.serve.model_card import PolicyCard, RunRecord, make_card, read_record
from etips.serve.stay_list import StayList


@dataclass(frozen=True, eq=False)
class Desk:
    """A run at work.

    Args:
        advisor: The policy.
        form: What may be filled in.
        record: What the run folder says.
        card: The model card.
        stays: The data that can be looked at; None where none were given.
    """

    advisor: Advisor
    form: Form
    record: RunRecord
    card: PolicyCard
    stays: StayList | None = None


def open_desk(run: Path, data: Trajectories | None, *, key: bytes) -> Desk:
    """Open a run folder; nothing of it is read later.

    Args:
        run: Folder that `etips fit` wrote.
        data: Stays to look at.
        key: Of the names that stays go by.
    """
    folder = RunFolder(run)
    if not folder.place.is_dir():
        raise FileError(str(run), "must be a folder that `etips fit` wrote")
    policy = folder.open_policy()
    results = read_results(run) if folder.results.is_file() else None
    advisor = Advisor(policy)
    form = Form.of(policy.schema, policy.scaler)
    record = read_record(folder, results)
    listed = None if data is None else StayList.of(advisor, data, key)
    return Desk(advisor, form, record, make_card(advisor, form, record), listed)
