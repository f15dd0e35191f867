"""`etips simulate`: write a data set whose truth is known."""

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from etips.cli.console import JsonFlag, OverwriteFlag, SeedOption, progress_bar, refusals, show
from etips.data import Trajectories
from etips.errors import FileError, SettingError
from etips.worlds.raw_tables import MIMIC3_SHAPE, MIMIC4_SHAPE, RawShape
from etips.worlds.simulation import Simulation
from etips.worlds.world_registry import WORLDS

SHAPES = {"mimic3": MIMIC3_SHAPE, "mimic4": MIMIC4_SHAPE}
"""Not worlds but what one is made of: raw tables, which become a log by `etips cohort`."""

_SHAPES = " or ".join(SHAPES)

_USUAL_TABLES = 200  # stays

if TYPE_CHECKING:
    WorldName = str
else:
    WorldName = StrEnum("WorldName", {name: name for name in [*WORLDS, *SHAPES]})
    """Names on the command line."""


class TableFormat(StrEnum):
    """How raw tables are written."""

    PARQUET = "parquet"
    CSV = "csv.gz"


class LoggingMode(StrEnum):
    """How the digit tasks log their actions."""

    SAMPLED = "sampled"
    ARGMAX = "argmax"


@dataclass(frozen=True)
class RawTables:
    """What concerns raw tables alone: those to copy from `source`, or else simulated ones."""

    source: Path | None
    copies: int | None
    table_format: TableFormat | None


WorldArgument = Annotated[WorldName, typer.Argument(help="Which world.")]
StaysOption = Annotated[
    int | None,
    typer.Option(min=1, help="How many stays; if left out, as many as the world usually has."),
]
LagOption = Annotated[
    int | None,
    typer.Option(
        min=0, max=1, help="1 hides a decision's own step from policies, where a world can."
    ),
]
LoggingOption = Annotated[
    LoggingMode, typer.Option(help="Digits: actions sampled (paper) or arg-max (authors).")
]
SourceOption = Annotated[
    Path | None,
    typer.Option("--from", help=f"{_SHAPES}: copy these raw tables instead of simulating."),
]
CopiesOption = Annotated[
    int | None, typer.Option(min=1, help=f"{_SHAPES}, with --from: how many copies; default 1.")
]
FormatOption = Annotated[
    TableFormat | None,
    typer.Option("--format", help=f"{_SHAPES}: default csv.gz, of copies parquet."),
]


def simulate(
    world: WorldArgument,
    out: Annotated[Path, typer.Option(help="Folder to write: Trajectories, or raw tables.")],
    stays: StaysOption = None,
    lag: LagOption = None,
    logging: LoggingOption = LoggingMode.SAMPLED,
    source: SourceOption = None,
    copies: CopiesOption = None,
    table_format: FormatOption = None,
    seed: SeedOption = 0,
    overwrite: OverwriteFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a simulated data set with its true propensities and true expected losses."""
    with refusals("etips simulate"):
        if out.exists() and not overwrite:
            raise FileError(str(out), "exists already", fix="Choose another, or --overwrite.")
        raw = RawTables(source, copies, table_format)
        if world in SHAPES:
            if lag is not None:
                raise SettingError("--lag", f"applies to {_with_lags()} only")
            shape = SHAPES[world]
            _write_raw_tables(shape, out, stays, seed, raw, overwrite=overwrite)
            title = f"raw tables of the {shape.database.label} shape in {out}"
            files = [path for path in sorted(out.rglob("*")) if path.is_file()]
            rows: list[dict[str, object]] = [
                {"file": path.relative_to(out).as_posix(), "bytes": path.stat().st_size}
                for path in files
            ]
            show(title, rows, as_json=as_json)
            return
        if raw != RawTables(None, None, None):
            raise SettingError("--from, --copies, --format", f"apply to {_SHAPES} only")
        wanted = Simulation(
            stays or WORLDS[world].usual_stays,
            seed=seed,
            lag=_lag(world, lag),
            logging=logging.value,
        )
        with progress_bar() as progress:
            progress("simulating", 0.0)
            data = WORLDS[world].simulate(replace(wanted, progress=progress))
            progress("writing", 1.0)
            data.save(out, overwrite=overwrite)
        show(f"{world} in {out}", [_summary(data)], as_json=as_json)


_SENTENCES = {world.name: world.sentence for world in WORLDS.values()} | {
    name: f"raw tables of the {shape.database.label} shape for `etips cohort`, or re-numbered "
    "copies of such tables, for tests of scale"
    for name, shape in SHAPES.items()
}
_EACH = "; ".join(f"{name}: {sentence}" for name, sentence in _SENTENCES.items())
simulate.__doc__ = f"{simulate.__doc__}\n\n{_EACH}."


def _write_raw_tables(
    shape: RawShape, out: Path, stays: int | None, seed: int, raw: RawTables, *, overwrite: bool
) -> None:
    if raw.source is None and raw.copies is not None:
        raise SettingError("--copies", "needs --from", fix="Give the folder to copy.")
    if raw.source is not None and stays is not None:
        raise SettingError("--stays", "cannot be used with --from")
    with progress_bar() as progress:
        if raw.source is None:
            shape.write_simulated(
                out,
                n_stays=stays or _USUAL_TABLES,
                seed=seed,
                parquet=raw.table_format is TableFormat.PARQUET,
                overwrite=overwrite,
                progress=progress,
            )
        else:
            shape.write_copies(
                out,
                source=raw.source,
                copies=raw.copies or 1,
                parquet=raw.table_format is not TableFormat.CSV,
                overwrite=overwrite,
                progress=progress,
            )


def _lag(world: str, lag: int | None) -> int:
    """The lag to simulate with: the one asked for, if the world has a choice."""
    lags = WORLDS[world].lags
    if lag is not None and len(lags) == 1:
        raise SettingError("--lag", f"applies to {_with_lags()} only; {world} has lag {lags[0]}")
    return lags[0] if lag is None else lag


def _with_lags() -> str:
    return ", ".join(world.name for world in WORLDS.values() if len(world.lags) > 1)


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
