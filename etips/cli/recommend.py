"""`etips recommend`: what a fitted policy would do at every decision."""

from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from etips.cli.columns import Columns, DataArgument, read_data, takes_columns
from etips.cli.console import JsonFlag, progress_bar, refusals, show
from etips.data import Trajectories
from etips.data.decisions import Ints
from etips.errors import FileError
from etips.files.writing import write_file
from etips.policies.policy import Answer, FittedPolicy
from etips.policies.policy_files import load_policy

RunArgument = Annotated[Path, typer.Argument(help="Run folder that `etips fit` wrote.")]


@takes_columns
def recommend(
    run: RunArgument,
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="Parquet file to write, one row a decision.")],
    columns: Columns,
    as_json: JsonFlag = False,
) -> None:
    """Write what the policy recommends, one row a decision, in decision order.

    A table without action and loss holds questions: every step is a decision, and if the policy
    sees earlier steps only, so is the step after the last one.
    """
    with refusals("etips recommend"):
        if out.suffix != ".parquet":
            raise FileError(str(out), "must end in .parquet")
        policy = open_run(run)
        with progress_bar() as progress:
            progress("reading", 0.1)
            stays = read_data(data, columns, like=policy.schema)
            progress("asking the policy", 0.4)
            answer = policy.answer(stays)
            advised = policy.recommend(answer)
            write_file(out, lambda file: pq.write_table(table_of(stays, answer, advised), file))
        summary = {
            "decisions": stays.n_decisions,
            "abstained": int(answer.abstained.sum()),
            "agrees with the log": _agreement(stays, advised),
        }
        show(f"recommendations in {out}", [summary], as_json=as_json)


def open_run(run: Path) -> FittedPolicy:
    """The policy of a run folder."""
    return load_policy(run / "policy" if (run / "policy").is_dir() else run)


def table_of(stays: Trajectories, answer: Answer, advised: Ints) -> pa.Table:
    """Recommendations as a table: the contract's columns.

    Args:
        stays: The data.
        answer: The policy's.
        advised: What it recommends, shape (n_decisions,).
    """
    stay = stays.decisions().stay
    columns = {
        "stay": pa.array(stays.stay[stay]),
        "step": pa.array(_step_labels(stays)),
        "logged_action": pa.array(stays.logged_action)
        if stays.logged
        else pa.nulls(len(stay), pa.int64()),
        "recommended_action": pa.array(advised),
    }
    for number, column in enumerate(answer.probabilities.T):
        columns[f"p_{number}"] = pa.array(np.ascontiguousarray(column))
    columns["abstained"] = pa.array(answer.abstained)
    return pa.table(columns)


def _step_labels(stays: Trajectories) -> np.ndarray[tuple[int], np.dtype[np.generic]]:
    """The decision's own step label; past the end one more than the last, if it is a number."""
    stay, step = stays.decisions()
    rows = stays.decision_rows
    past = step == np.diff(stays.offsets)[stay]
    labels = stays.step[np.where(past, rows - 1, rows)].copy()
    if np.issubdtype(labels.dtype, np.number):
        labels[past] += 1
    return labels


def _agreement(stays: Trajectories, advised: Ints) -> object:
    if not stays.logged:
        return "no log"
    return float((advised == stays.logged_action).mean())
