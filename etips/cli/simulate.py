"""`etips simulate`: write a data set whose truth is known."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from etips.cli.console import JsonFlag, OverwriteFlag, SeedOption, progress_bar, show
from etips.data import Trajectories
from etips.errors import FileError, SettingError
from etips.worlds.raw_tables import MIMIC3_SHAPE, MIMIC4_SHAPE
from etips.worlds.world_registry import WORLDS, Simulation

SHAPES = {"mimic3": MIMIC3_SHAPE, "mimic4": MIMIC4_SHAPE}
"""Not worlds but what one is made of: raw tables, which become a log by `etips cohort`."""

_SHAPES = " or ".join(SHAPES)
_USUAL_TABLES = 200  # stays

if TYPE_CHECKING:
    WorldName = str
else:
    WorldName = Literal[(*WORLDS, *SHAPES)]
    """Names on the command line."""
CopiesOption = Annotated[
    int | None,
    typer.Option(min=1, help=f"{_SHAPES}, with --from: how many copies; default 1."),
]
TableFormatOption = Annotated[
    Literal["parquet", "csv.gz"] | None,
    typer.Option("--format", help=f"{_SHAPES}: default csv.gz, of copies parquet."),
]


def simulate(
    world: Annotated[WorldName, typer.Argument(help="Which world.")],
    out: Annotated[Path, typer.Option(help="Folder to write: Trajectories, or raw tables.")],
    stays: Annotated[
        int | None,
        typer.Option(min=1, help="How many stays; if left out, as many as the world usually has."),
    ] = None,
    lag: Annotated[
        int | None,
        typer.Option(
            min=0, max=1, help="1 hides a decision's own step from policies, where a world can."
        ),
    ] = None,
    logging: Annotated[
        Literal["sampled", "argmax"],
        typer.Option(help="Digits: actions sampled (paper) or arg-max (authors)."),
    ] = "sampled",
    source: Annotated[
        Path | None,
        typer.Option("--from", help=f"{_SHAPES}: copy these raw tables instead of simulating."),
    ] = None,
    copies: CopiesOption = None,
    table_format: TableFormatOption = None,
    seed: SeedOption = 0,
    overwrite: OverwriteFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a simulated data set with its true propensities and true expected losses."""
    if out.exists() and not overwrite:
        raise FileError(str(out), "exists already", fix="Choose another, or --overwrite.")
    lags = (0,) if world in SHAPES else WORLDS[world].lags
    if lag is not None and len(lags) == 1:
        several = ", ".join(own.name for own in WORLDS.values() if len(own.lags) > 1)
        rule = f"applies to {several} only"
        rule += "" if world in SHAPES else f"; {world} has lag {lags[0]}"
        raise SettingError("--lag", rule)
    if world in SHAPES:
        parquet = None if table_format is None else table_format == "parquet"
        files = _write_tables(world, out, stays, seed, source, copies, parquet, overwrite=overwrite)
        title = f"raw tables of the {SHAPES[world].database.label} shape in {out}"
        show(title, files, as_json=as_json)
        return
    if (source, copies, table_format) != (None, None, None):
        raise SettingError("--from, --copies, --format", f"apply to {_SHAPES} only")
    wanted = Simulation(
        stays or WORLDS[world].usual_stays,
        seed=seed,
        lag=lags[0] if lag is None else lag,
        logging=logging,
    )
    with progress_bar() as progress:
        progress("simulating", 0.0)
        data = WORLDS[world].simulate(replace(wanted, progress=progress))
        progress("writing", 1.0)
        data.save(out, overwrite=overwrite)
    show(f"{world} in {out}", [_summary(data)], as_json=as_json)


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


_SENTENCES = {world.name: world.sentence for world in WORLDS.values()} | {
    name: f"raw tables of the {shape.database.label} shape for `etips cohort`, or re-numbered "
    "copies of such tables, for tests of scale"
    for name, shape in SHAPES.items()
}
_EACH = "; ".join(f"{name}: {sentence}" for name, sentence in _SENTENCES.items())
simulate.__doc__ = f"{simulate.__doc__}\n\n{_EACH}."


def _write_tables(
    world: str,
    out: Path,
    stays: int | None,
    seed: int,
    source: Path | None,
    copies: int | None,
    parquet: bool | None,
    *,
    overwrite: bool,
) -> list[dict[str, object]]:
    """Write raw tables, copies of those of a source or simulated ones; a row a file."""
    if source is None and copies is not None:
        raise SettingError("--copies", "needs --from", fix="Give the folder to copy.")
    if source is not None and stays is not None:
        raise SettingError("--stays", "cannot be used with --from")
    shape = SHAPES[world]
    with progress_bar() as progress:
        if source is None:
            shape.write_simulated(
                out,
                n_stays=stays or _USUAL_TABLES,
                seed=seed,
                parquet=bool(parquet),
                overwrite=overwrite,
                progress=progress,
            )
        else:
            shape.write_copies(
                out,
                source=source,
                copies=copies or 1,
                parquet=parquet is not False,
                overwrite=overwrite,
                progress=progress,
            )
    return [
        {"file": path.relative_to(out).as_posix(), "bytes": path.stat().st_size}
        for path in sorted(out.rglob("*"))
        if path.is_file()
    ]
