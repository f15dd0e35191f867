"""`etips recommend`: what a fitted policy would do at every decision."""

from pathlib import Path
from typing import Annotated

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import typer

from etips.cli.arguments import DataArgument, takes_columns
from etips.cli.console import JsonFlag, progress_bar, show
from etips.cli.run_data import RunArgument, read_like
from etips.data.tables.table_spec import TableSpec
from etips.disclosure import FEW, are_few, shown_parts
from etips.errors import FileError
from etips.files.writing import write_file

_WRITERS = {".parquet": pq.write_table, ".csv": pa_csv.write_csv}
_MOST_ROWS = 30


@takes_columns
def recommend(
    run: RunArgument,
    data: DataArgument,
    out: Annotated[Path, typer.Option(help=".parquet or .csv file to write, one row a decision.")],
    columns: TableSpec,
    as_json: JsonFlag = False,
) -> None:
    """Write what the policy recommends, one row a decision, in decision order.

    A table without action and loss holds questions: every step is a decision, and if the policy
    sees earlier steps only, so is the step after the last one.
    """
    if out.suffix not in _WRITERS:
        raise FileError(str(out), f"must end in {' or '.join(_WRITERS)}")
    with progress_bar() as progress:
        progress("reading", 0.1)
        stays = read_like([run], data, columns)
        progress("asking the policy", 0.4)
        from etips.policies.recommendations import Recommendations  # noqa: PLC0415  # torch
        from etips.runs.folder import RunFolder  # noqa: PLC0415

        policy = RunFolder(run).open_policy()
        advice = Recommendations.of(policy, stays)
        write_file(out, lambda file: _WRITERS[out.suffix](advice.table(), file))
    n = stays.n_decisions
    summary: dict[str, object] = {
        "decisions": FEW if are_few(n) else n,
        "acts": policy.acts,
        "abstained": _unless_few(advice.n_abstained, n, advice.n_abstained),
        "agrees with the log": "no log",
    }
    if advice.agreement is not None:  # a share of few decisions is a count of them
        agreed = round(advice.agreement * n)
        summary["agrees with the log"] = _unless_few(agreed, n, advice.agreement)
    shares = advice.shares()
    if as_json:
        summary["recommended"] = dict(shares)
    show(f"recommendations in {out}", [summary], as_json=as_json)
    if not as_json:
        rows = [
            {"action": name, "recommended": f"{FEW} people" if own is None else f"{own:.1%}"}
            for name, own in shares
        ]
        show("what is recommended, share of the decisions", rows[:_MOST_ROWS], as_json=False)


def _unless_few(part: int, n: int, shown: float) -> object:
    return "not shown" if None in shown_parts(part, n - part) else shown
