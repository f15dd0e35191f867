"""`etips tune`: search for the settings of a learner."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from etips.cli.arguments import (
    USUAL,
    DataArgument,
    MethodOption,
    require_method_name,
    takes_columns,
)
from etips.cli.console import (
    JsonFlag,
    SeedOption,
    figure,
    progress_bar,
    require_package,
    show,
    showing_notes,
)
from etips.data.tables.reading import read_data, require_log
from etips.data.tables.table_spec import TableSpec
from etips.errors import FileError, SettingError
from etips.files.json_documents import canonical
from etips.files.toml import read_toml
from etips.runs.places import Device

if TYPE_CHECKING:
    from etips.studies.tuning import Search, Trial, Tuned

SHOWN = 10  # best trials that the table holds


@takes_columns
def tune(
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="Folder of the search.")],
    columns: TableSpec,
    method: MethodOption = None,
    trials: Annotated[int, typer.Option(help="How many settings to try.", min=1)] = 20,
    space: Annotated[
        str | None, typer.Option(help="TOML file that says what to search, or: paper.")
    ] = None,
    batch: Annotated[
        int, typer.Option(help="Trials proposed together; the result depends on it.", min=1)
    ] = 4,
    bundle: Annotated[int, typer.Option(help="How many trials in a row share a shape.", min=1)] = 1,
    jobs: Annotated[int, typer.Option(help="Tasks at a time.", min=1)] = 1,
    cluster: Annotated[
        str | None, typer.Option(help="Address of a Ray cluster to use, or local.")
    ] = None,
    device: Annotated[Device, typer.Option(help="Where to train.")] = Device.AUTO,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
) -> None:
    """Search for settings of least held-out risk, and write them as best.toml.

    Interrupted, the same command goes on where it stopped; with more trials it goes on from there.
    Then: etips fit DATA --config OUT/best.toml. Evaluate on stays that the search did not see.
    """
    require_package("optuna", "tune", "tune")
    require_method_name(method)
    require_log(data, columns)
    with progress_bar() as progress:
        progress("reading", 0.0)
        with showing_notes():  # before the long part
            stays = read_data(data, columns)
        progress("getting ready", 0.0)
        from etips.studies.tuning import BEST  # noqa: PLC0415  # with torch
        from etips.studies.tuning import tune as search_settings  # noqa: PLC0415

        search = _make_search(
            method or USUAL,
            space,
            n_trials=trials,
            batch=batch,
            bundle=bundle,
            device=device.value,
            seed=seed,
        )
        tuned = search_settings(stays, out, search, jobs=jobs, cluster=cluster, report=progress)
    if as_json:
        typer.echo(canonical(tuned.to_json()).decode(), nl=False)
    else:
        _print(tuned, out / BEST)


def _print(tuned: "Tuned", best: Path) -> None:
    values: dict[str, set[str]] = {}
    for trial in tuned.trials:
        for key, value in trial.settings.items():
            values.setdefault(key, set()).add(str(value))
    searched = sorted(key for key, own in values.items() if len(own) > 1)
    rows = [_row(trial, searched) for trial in tuned.trials[:SHOWN]]
    show(f"{len(tuned.trials)} trials, the best first", rows, as_json=False)
    if tuned.importance:
        shares = ", ".join(f"{key} {share:.0%}" for key, share in tuned.importance.items())
        typer.echo(f"What told the best trials from the others: {shares}")
    typer.echo(f"Best settings in {best}; use them with: etips fit DATA --config {best}")


def _make_search(method: str, space: str | None, **how: Any) -> "Search":  # noqa: ANN401
    """The search that was asked for; a slip in a file is refused as the file's."""
    from etips.studies.space import PAPER, paper_space, read_space, usual_space  # noqa: PLC0415
    from etips.studies.tuning import Search  # noqa: PLC0415

    try:
        if space in (None, PAPER):
            searched = usual_space(method) if space is None else paper_space(method)
        else:
            searched = read_space(read_toml(Path(str(space))), method)
        return Search(method=method, space=searched, **how)
    except SettingError as error:
        if space in (None, PAPER) or error.name in ("method", *how):
            raise
        raise FileError(str(space), f"{error.name} {error.rule}", fix=error.fix) from error


def _row(trial: "Trial", keys: list[str]) -> dict[str, object]:
    """A line narrow enough for a terminal of eighty columns; the JSON has the rest."""
    settings = []
    for key in keys:
        value = trial.settings[key]
        if isinstance(value, list):
            value = f"{value[0]:g}..{value[-1]:g}"
        settings.append(f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}")
    record = trial.record
    return {
        "trial": trial.number,
        "held-out risk": "-"
        if record.risk is None
        else f"{record.risk:.3f} +/- {record.std_error:.3f}",
        "factor": figure(record.matching_factor, ".2f"),
        "doubt": trial.doubt,
        "settings": "\n".join(settings),
    }
