"""`etips reproduce`: the paper's tables, with the published figure beside ours."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from etips.cli.console import JobsOption, JsonFlag, MarkdownFlag, SeedOption, progress_bar
from etips.cli.study_output import (
    make_folder,
    print_study,
    tables_as_json,
    tables_as_markdown,
    write_study,
)
from etips.errors import SettingError
from etips.files.toml import read_toml
from etips.runs.places import Device
from etips.runs.tasks import jobs_for
from etips.studies.experiment import DATA_FOLDER, Experiment, read_experiment, shipped
from etips.studies.study import run_study
from etips.studies.study_data import FolderData, data_of, open_external
from etips.studies.study_tasks import make_plan
from etips.worlds.world_registry import WORLDS

TABLE2 = "table2"
_TASKS = ("zeros", "rows")
_WORLDS = [name for name, world in WORLDS.items() if not world.has_labels]

if TYPE_CHECKING:
    WorldName = str
else:
    WorldName = Literal[tuple(_WORLDS)]
    """Worlds of Table II."""


TaskOption = Annotated[
    Literal["zeros", "rows", "both"] | None,
    typer.Option(help="table1: one of its tasks; both if left out."),
]
DataOption = Annotated[
    Path | None, typer.Option(help="table2: a cohort or another Trajectories folder.")
]
ExternalOption = Annotated[
    Path | None,
    typer.Option(help="table2 with --data: a cohort of another source to test on as well."),
]
WorldOption = Annotated[
    WorldName | None, typer.Option(help="table2 without data: icu-sepsis if left out.")
]
LagOption = Annotated[
    int | None, typer.Option(min=0, max=1, help="table2: 1 hides a decision's own step.")
]
PresetOption = Annotated[
    Literal["etips", "paper", "authors"],
    typer.Option(help="Ours, as the paper says, or as its published code does."),
]
ConfigOption = Annotated[
    Path | None, typer.Option(help="TOML file in place of the shipped experiment.")
]
OutOption = Annotated[
    Path | None, typer.Option(help="Folder to write; named after the table if left out.")
]


@dataclass(frozen=True)
class Asked:
    """Which experiments were asked for; what does not go together is refused."""

    table: str
    task: str | None
    data: Path | None
    world: str | None
    lag: int | None
    config: Path | None
    external: Path | None = None

    def __post_init__(self) -> None:
        first = self.table != TABLE2
        for name, given, applies in (
            ("--task", self.task, first),
            ("--data", self.data, not first),
            ("--world", self.world, not first),
            ("--lag", self.lag, not first),
            ("--external", self.external, not first),
        ):
            if given is not None and not applies:
                raise SettingError(name, f"does not apply to {self.table}")
        if self.external is not None and self.data is None:
            raise SettingError("--external", "needs --data", fix="Name the cohort to learn from.")
        if self.data is not None and self.world is not None:
            raise SettingError("--data, --world", "must not both be given")
        if self.lag is not None and self.world and self.lag not in WORLDS[self.world].lags:
            raise SettingError("--lag", f"must be 0: the {self.world} shows a decision's own step")
        if self.config is not None and first and self.task not in _TASKS:
            raise SettingError("--config", "is one experiment: name its --task, zeros or rows")

    def experiments(self, *, preset: str, quick: bool, seed: int) -> list[Experiment]:
        """What to study, each refused here if its data are not there."""
        changes: dict[str, object] = {"seed": seed}
        if self.data is not None:  # a cohort keeps the paper's lag unless told
            changes |= {"world": DATA_FOLDER, "n": 0, "lag": 1}
        elif self.world is not None:
            changes["world"] = str(self.world)
        changes |= {} if self.lag is None else {"lag": self.lag}
        names = [TABLE2]
        if self.table != TABLE2:
            names = [f"table1-{task}" for task in _TASKS if self.task in (task, "both", None)]
        experiments = []
        for name in names:
            document = shipped(name) if self.config is None else read_toml(self.config)
            own = read_experiment(document, name=name, preset=preset, quick=quick, **changes)
            if own.table != self.table:
                raise SettingError("--config", f"is an experiment of {own.table}")
            experiments.append(own)
            data = data_of(own, self.data)
            if self.external is not None and isinstance(data, FolderData):
                like = data.open_log().schema  # refused here, not after hours of fitting
                open_external(FolderData.of(self.external, own.lag), like)
        return experiments


def reproduce(
    table: Annotated[Literal["table1", "table2"], typer.Argument(help="Which table of the paper.")],
    task: TaskOption = None,
    data: DataOption = None,
    external: ExternalOption = None,
    world: WorldOption = None,
    lag: LagOption = None,
    preset: PresetOption = "etips",
    quick: Annotated[
        bool, typer.Option("--quick", help="A short run; figures say little.")
    ] = False,
    config: ConfigOption = None,
    out: OutOption = None,
    jobs: JobsOption = None,
    cluster: Annotated[str | None, typer.Option(help="Address of a Ray cluster.")] = None,
    device: Annotated[Device, typer.Option(help="Where to train.")] = Device.AUTO,
    seed: SeedOption = 0,
    as_json: JsonFlag = False,
    as_markdown: MarkdownFlag = False,
) -> None:
    """Repeat a study of the paper: every method, every fold, the published figure beside ours.

    Interrupted, the same command goes on where it stopped. Writes results.json, report.html and
    figures; of table1 with both tasks into one folder each.
    """
    asked = Asked(table, task, data, world, lag, config, external)
    if as_json and as_markdown:
        raise SettingError("--json, --markdown", "must not both be given")
    experiments = asked.experiments(preset=preset, quick=quick, seed=seed)
    # A device that is not there is refused here too; that of a cluster is elsewhere.
    suited = 1 if cluster else jobs_for(device.value)
    study = partial(
        run_study,
        data=data,
        external=external,
        device=device.value,
        jobs=jobs or (1 if quick else suited),
        cluster=cluster,
        announce=lambda line: typer.echo(f"etips reproduce: {line}", err=True),
    )
    place = make_folder(out or Path(table))
    results = {}
    spans = _spans(experiments, data, device.value)
    for experiment, span in zip(experiments, spans, strict=True):
        own = place
        if len(experiments) > 1:
            own = make_folder(place / experiment.name.rpartition("-")[2])
        with progress_bar() as progress:
            result = study(experiment, own, report=progress, span=span)
            results[experiment.name] = result
            progress("writing", span[1])
            write_study(result, own)
        if as_markdown:
            typer.echo(tables_as_markdown(result))
        elif not as_json:
            print_study(result, own)
    if as_json:
        typer.echo(tables_as_json(results))


def _spans(
    experiments: Sequence[Experiment], data: Path | None, device: str
) -> list[tuple[float, float]]:
    """Share of the whole command before each study and after it, by what they cost."""
    plans = [make_plan(own, data_of(own, data), device=device) for own in experiments]
    sizes = [
        max(own.n, 1) * sum(task.cost for wave in waves for task in wave)
        for own, waves in zip(experiments, plans, strict=True)
    ]
    ends = [sum(sizes[: place + 1]) / sum(sizes) for place in range(len(sizes))]
    return list(zip([0.0, *ends[:-1]], ends, strict=True))
