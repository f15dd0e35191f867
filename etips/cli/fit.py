"""`etips fit`: learn a policy from logged decisions."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from etips.cli.columns import DataArgument, takes_columns
from etips.cli.console import (
    JsonFlag,
    OverwriteFlag,
    progress_bar,
    refusals,
    say,
    show,
    standing,
)
from etips.cli.method_option import MethodOption, require_method_name
from etips.data.sizes import count_missing_losses
from etips.data.tables.reading import as_read, read_data, require_log
from etips.data.tables.table_spec import TableSpec, read_columns
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.machine import importing
from etips.runs.places import CONFIG, Device, require_room

if TYPE_CHECKING:
    from etips.cli.fitting import Fitted

ConfigOption = Annotated[
    Path | None, typer.Option(help=f"TOML file as a run's {CONFIG}; options go over it.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value, repeatable: candidates=regression,forest, seconds=60."),
]
SeedOption = Annotated[
    int | None, typer.Option(help="Same seed, same result; 0 if left out.", min=0)
]
HoldOutOption = Annotated[
    float | None,
    typer.Option(help="Share of the stays to keep apart, on which `etips evaluate` judges."),
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
    with refusals("etips fit") as tell_notes:
        require_room(out, overwrite=overwrite)
        require_method_name(method)
        require_share(hold_out)
        if config is not None:
            columns = columns.over(read_columns(config, of_run=True))
        require_log(data, columns)
        started = time.perf_counter()
        with progress_bar() as progress:
            progress("reading", 0.0)
            stays = read_data(data, columns)
            require_choice(data.name, stays)
            tell_notes()  # before the long part
            progress("getting ready", 0.0)
            with importing():
                from etips.cli.fitting import Told, fit_run  # noqa: PLC0415  # with torch

            read_as = as_read(columns, stays)
            told = Told(config, method, tuple(set_ or ()), read_as, device, seed, hold_out)
            fitted = fit_run(
                stays,
                out,
                told,
                overwrite=overwrite,
                report=lambda at, share: progress(standing(at), share),
            )
        title = f"{fitted.method}, fitted in {time.perf_counter() - started:.0f} s, in {out}"
        if as_json:
            show(title, fitted.rows(), as_json=True)
        else:
            _print(title, fitted)


def require_share(hold_out: float | None) -> None:
    """Refuse a share of stays that keeps none apart or all."""
    if hold_out is not None and not 0 < hold_out < 1:
        raise SettingError("--hold-out", "must be a share between 0 and 1")


def require_choice(where: str, stays: Trajectories) -> None:
    """Refuse a log in which every decision took the same action: there is nothing to learn."""
    if np.unique(stays.logged_action).size < 2:
        fix = "Name the column of the treatment (--action), or write what was given instead of it."
        raise DataError(where, "must hold at least two actions to learn from", fix=fix)


def _print(title: str, fitted: "Fitted") -> None:
    rows, choice = fitted.rows(), fitted.learner.choice_
    if choice is not None:
        show(title, [_tried(row) for row in rows if row["kind"] != "left out"], as_json=False)
        say(_LEGEND)
        say(choice.sentence)
    else:
        show(title, list(map(narrow, rows)), as_json=False)
    for own in rows:
        if own.get("after selection"):
            say(f"After selection, {own['candidate']}: {own['after selection']}.")
    missing = count_missing_losses(fitted.stays)
    if missing is not None:
        typer.echo(missing.tell())


_LEGEND = (
    "against clinicians: risk less theirs on held-out decisions, with a 95 % interval; below zero "
    "is better. Models are shown as each would do alone; the stack adds them up by weight. A lean "
    "is how much what clinicians do counts. s: seconds, of models but networks on one core."
)


def _tried(row: Mapping[str, object]) -> dict[str, object]:
    """What was tried, as eighty columns hold it."""
    limits = f"[{row['low']:+.4f}, {row['high']:+.4f}]"
    seconds = row["seconds"]
    return {
        "candidate": row["candidate"],
        "against clinicians": f"{row['against clinicians']:+.4f} {limits}",
        "weight": "" if row["weight"] is None else f"{row['weight']:.2f}",
        "s": "" if seconds is None else f"{seconds:.0f}",
        "kept": "<-" if row["kept"] else "",
    }


_NARROW = {"matching factor": "factor", "effective size": "worth", "chosen": ""}


def narrow(row: Mapping[str, object]) -> dict[str, object]:
    """A row of candidates as eighty columns hold it; what only one has is a sentence of its own."""
    kept = {_NARROW.get(name, name): v for name, v in row.items() if name != "after selection"}
    if "candidate" in kept:
        kept["candidate"] = str(kept["candidate"]).removesuffix(" action")
    return kept
