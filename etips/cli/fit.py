"""`etips fit`: learn a policy from logged decisions."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from etips.cli.arguments import DataArgument, MethodOption, require_method_name, takes_columns
from etips.cli.console import (
    JsonFlag,
    OverwriteFlag,
    progress_bar,
    say,
    show,
    showing_notes,
    standing,
)
from etips.data.sizes import count_missing_losses
from etips.data.tables.reading import as_read, read_data, require_log
from etips.data.tables.table_spec import TableSpec, read_columns
from etips.errors import DataError, SettingError
from etips.runs.places import CONFIG, Device, require_room

_LEGEND = (
    "against clinicians: risk less theirs on held-out decisions, with a 95 % interval; below zero "
    "is better. Models are shown as each would do alone; the stack adds them up by weight. A lean "
    "is how much what clinicians do counts. s: seconds, of models but networks on one core."
)
_SHORT = {"matching factor": "factor", "effective size": "worth", "chosen": ""}
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value, repeatable: candidates=regression,forest, seconds=60."),
]
ConfigOption = Annotated[
    Path | None, typer.Option(help=f"TOML file as a run's {CONFIG}; options go over it.")
]
HoldOutOption = Annotated[
    float | None,
    typer.Option(help="Share of the stays to keep apart, on which `etips evaluate` judges."),
]
SeedOption = Annotated[
    int | None, typer.Option(help="Same seed, same result; 0 if left out.", min=0)
]


@takes_columns
def fit(
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="Run folder to write.")],
    columns: TableSpec,
    config: ConfigOption = None,
    method: MethodOption = None,
    set_: SetOption = None,
    device: Annotated[Device | None, typer.Option(help="Where to train; auto if left out.")] = None,
    seed: SeedOption = None,
    hold_out: HoldOutOption = None,
    overwrite: OverwriteFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Learn a policy from logged decisions and write it as a run folder.

    Interrupted, the same command goes on where it stopped. Prints what was learned: what was
    tried, what was kept and why; for etips and its kin every candidate translation.
    """
    require_room(out, overwrite=overwrite)
    require_method_name(method)
    if hold_out is not None and not 0 < hold_out < 1:
        raise SettingError("--hold-out", "must be a share between 0 and 1")
    if config is not None:
        columns = columns.over(read_columns(config, of_run=True))
    require_log(data, columns)
    started = time.perf_counter()
    with progress_bar() as progress:
        progress("reading", 0.0)
        with showing_notes():  # before the long part
            stays = read_data(data, columns)
            if np.unique(stays.logged_action).size < 2:
                rule = "must hold at least two actions to learn from"
                fix = "Name the column of the treatment (--action), or write what was given instead"
                raise DataError(data.name, rule, fix=f"{fix} of it.")
        progress("getting ready", 0.0)
        from etips.cli.fitting import Told, fit_run, table_of  # noqa: PLC0415  # with torch

        read_as = as_read(columns, stays)
        told = Told(config, method, tuple(set_ or ()), read_as, device, seed, hold_out)
        name, learner, learned_from = fit_run(
            stays,
            out,
            told,
            overwrite=overwrite,
            report=lambda at, share: progress(standing(at), share),
        )
    title = f"{name}, fitted in {time.perf_counter() - started:.0f} s, in {out}"
    rows = table_of(learner)
    if as_json:
        show(title, rows, as_json=True)
        return
    choice, missing = learner.choice_, count_missing_losses(learned_from)
    _print(title, rows, "" if choice is None else choice.sentence)
    if missing is not None:
        typer.echo(missing.tell())


def _print(title: str, rows: Sequence[Mapping[str, object]], choice: str) -> None:
    show(title, _narrow(rows), as_json=False)
    if choice:
        say(_LEGEND)
        say(choice)
    for row in rows:
        if row.get("after selection"):
            say(f"After selection, {row['candidate']}: {row['after selection']}.")


def _narrow(rows: Sequence[Mapping[str, object]]) -> list[dict[str, object]]:
    """Rows as eighty columns hold them; what only one has is a sentence of its own."""
    narrow: list[dict[str, object]] = []
    for row in rows:
        if row.get("kind") == "left out":
            continue
        if "kind" in row:
            weight, seconds = row["weight"], row["seconds"]
            gap = f"{row['against clinicians']:+.4f} [{row['low']:+.4f}, {row['high']:+.4f}]"
            shown = {
                "candidate": row["candidate"],
                "against clinicians": gap,
                "weight": "" if weight is None else f"{weight:.2f}",
                "s": "" if seconds is None else f"{seconds:.0f}",
                "kept": "<-" if row["kept"] else "",
            }
        else:
            shown = {_SHORT.get(k, k): v for k, v in row.items() if k != "after selection"}
            if "candidate" in shown:
                shown["candidate"] = str(shown["candidate"]).removesuffix(" action")
        narrow.append(shown)
    return narrow
