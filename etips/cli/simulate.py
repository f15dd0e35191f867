"""`etips simulate`: write a data set whose truth is known."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from etips.cli.console import JsonFlag, OverwriteFlag, SeedOption, progress_bar, refusals, show
from etips.data import Trajectories
from etips.errors import FileError, SettingError
from etips.worlds import clinic, icu_sepsis
from etips.worlds.bandit import Logging, Progress
from etips.worlds.mimic3_tables import write_copies, write_simulated


class World(StrEnum):
    """Names of the worlds on the command line."""

    ZEROS = "digits-zeros"
    ROWS = "digits-rows"
    ICU_SEPSIS = "icu-sepsis"
    CLINIC = "clinic"
    MIMIC3 = "mimic3"


class TableFormat(StrEnum):
    """How raw tables are written."""

    PARQUET = "parquet"
    CSV = "csv.gz"


class LoggingMode(StrEnum):
    """How the digit tasks log their actions."""

    SAMPLED = "sampled"
    ARGMAX = "argmax"


def simulate(
    world: Annotated[World, typer.Argument(help="Which world.")],
    out: Annotated[Path, typer.Option(help="Folder to write: Trajectories, or raw tables.")],
    stays: Annotated[
        int | None,
        typer.Option(min=1, help="How many stays; default 20,000, or all of a digits task."),
    ] = None,
    lag: Annotated[
        int | None,
        typer.Option(
            min=0, max=1, help="icu-sepsis: 1 (default) hides a decision's own step from policies."
        ),
    ] = None,
    logging: Annotated[
        LoggingMode, typer.Option(help="Digits: actions sampled (paper) or arg-max (authors).")
    ] = LoggingMode.SAMPLED,
    source: Annotated[
        Path | None,
        typer.Option("--from", help="mimic3: copy these raw tables instead of simulating."),
    ] = None,
    copies: Annotated[
        int | None, typer.Option(min=1, help="mimic3, with --from: how many copies; default 1.")
    ] = None,
    table_format: Annotated[
        TableFormat | None,
        typer.Option("--format", help="mimic3: default csv.gz, of copies parquet."),
    ] = None,
    seed: SeedOption = 0,
    overwrite: OverwriteFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a simulated data set with its true propensities and true expected losses.

    digits-zeros and digits-rows are the paper's two MNIST tasks; icu-sepsis simulates stays of a
    published sepsis model under its clinicians; clinic is a small tunable world; mimic3 writes raw
    tables of the MIMIC-III shape for `etips cohort`, or re-numbered, time-shifted copies of such
    tables, for tests of scale.
    """
    with refusals("etips simulate"):
        if out.exists() and not overwrite:
            raise FileError(str(out), "exists already", fix="Choose another, or --overwrite.")
        if world is World.MIMIC3:
            with progress_bar() as progress:
                if lag is not None:
                    raise SettingError("--lag", "applies to icu-sepsis only")
                _write_raw_tables(
                    out, stays, seed, source, copies, table_format, overwrite, progress
                )
            show(f"raw tables of the MIMIC-III shape in {out}", _files(out), as_json=as_json)
            return
        if (source, copies, table_format) != (None, None, None):
            raise SettingError("--from, --copies, --format", "apply to mimic3 only")
        with progress_bar() as progress:
            data = _make(world, stays, lag, logging.value, seed, progress)
            progress("writing", 1.0)
            data.save(out, overwrite=overwrite)
        show(f"{world.value} in {out}", [_summary(data)], as_json=as_json)


def _write_raw_tables(
    out: Path,
    stays: int | None,
    seed: int,
    source: Path | None,
    copies: int | None,
    table_format: TableFormat | None,
    overwrite: bool,
    progress: Progress,
) -> None:
    if source is None:
        if copies is not None:
            raise SettingError("--copies", "needs --from", fix="Give the folder to copy.")
        parquet = table_format is TableFormat.PARQUET
        n_stays = stays or 200
        write_simulated(
            out, n_stays=n_stays, seed=seed, parquet=parquet, overwrite=overwrite, progress=progress
        )
        return
    if stays is not None:
        raise SettingError("--stays", "cannot be used with --from")
    parquet = table_format is not TableFormat.CSV
    write_copies(
        out, source=source, copies=copies or 1, parquet=parquet, overwrite=overwrite,
        progress=progress,
    )  # fmt: skip


def _files(folder: Path) -> list[dict[str, object]]:
    return [{"file": path.name, "bytes": path.stat().st_size} for path in sorted(folder.iterdir())]


def _make(
    world: World,
    stays: int | None,
    lag: int | None,
    logging: Logging,
    seed: int,
    progress: Progress,
) -> Trajectories:
    if lag is not None and world is not World.ICU_SEPSIS:
        raise SettingError("--lag", "applies to icu-sepsis only; the other worlds have lag 0")
    if world in (World.ZEROS, World.ROWS):
        from etips.worlds import digits  # noqa: PLC0415  # brings torch, which takes a second

        make = digits.zeros if world is World.ZEROS else digits.rows
        return make(n=stays, logging=logging, seed=seed, progress=progress)
    progress("simulating", 0.0)
    if world is World.CLINIC:
        return clinic.Clinic().log(stays or 20_000, seed=seed)
    return icu_sepsis.simulate(stays or 20_000, seed=seed, lag=1 if lag is None else lag)


def _summary(data: Trajectories) -> dict[str, object]:
    return {
        "stays": data.n_stays,
        "steps": data.n_steps,
        "decisions": data.n_decisions,
        "features": data.sequence.shape[1],
        "actions": data.n_actions,
        "lag": data.lag,
        "mean loss": float(data.logged_loss.mean()),
        "true risk of the logging policy": data.true_risk(data.true_logging()),
    }
