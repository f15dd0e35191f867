"""`etips bench`: every method, and what a user would pick instead, where the truth is known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from etips.cli.console import JsonFlag, progress_bar, refusals
from etips.cli.study_output import (
    REPORT,
    make_folder,
    page_console,
    print_plain,
    print_titled,
    write_page,
)
from etips.errors import SettingError
from etips.files.json_documents import canonical
from etips.runs.places import RESULTS, Device

if TYPE_CHECKING:
    from etips.results.bench_result import Bench

WorldsOption = Annotated[
    str | None,
    typer.Option(help="Worlds, commas between; all if left out, four with --quick."),
]
MethodsOption = Annotated[
    str | None,
    typer.Option(help="Methods and peers, commas between; all methods if left out."),
]
PeersFlag = Annotated[
    bool, typer.Option("--peers", help="Also the other packages that are installed.")
]
StaysOption = Annotated[
    int | None, typer.Option(help="Most stays to learn from, and to judge by, in a world.", min=50)
]
TrialOption = Annotated[
    Path | None, typer.Option(help="IST.csv of the stroke trial, which is a world then.")
]


def bench(
    worlds: WorldsOption = None,
    methods: MethodsOption = None,
    peers: PeersFlag = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A run in minutes; figures say nothing.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("bench"),
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Tasks at a time; as suits the machine if left out.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each world.")] = 1,
    stays: StaysOption = None,
    trial: TrialOption = None,
    device: Annotated[Device, typer.Option(help="Where our networks train.")] = Device.CPU,
    as_json: JsonFlag = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables as Markdown.")
    ] = False,
) -> None:
    """Run every method in every world with known truth: who is best, by how much, at what cost.

    Interrupted, the same command goes on where it stopped; with more worlds, methods or seeds it
    adds them. Writes results.json, report.html and figures.
    """
    with refusals("etips bench"):
        if as_json and as_markdown:
            raise SettingError("--json, --markdown", "must not both be given")
        with progress_bar() as progress:
            progress("getting ready", 0.0)
            from etips.bench.bench_run import BenchPlan, choose_worlds, run_bench  # noqa: PLC0415
            from etips.bench.contestants import choose_contestants  # noqa: PLC0415
            from etips.runs.tasks import jobs_for  # noqa: PLC0415

            plan = BenchPlan(
                choose_worlds(_names("--worlds", worlds), trial, quick=quick),
                choose_contestants(_names("--methods", methods), peers=peers),
                seeds=seeds,
                quick=quick,
                stays=stays,
                trial=trial,
                device=device.value,
            )
            place, at_once = make_folder(out), jobs or jobs_for(device.value)
            result = run_bench(plan, place, jobs=at_once, report=progress)
            progress("writing", 1.0)
            write_bench(result, place)
        if as_json:
            typer.echo(canonical(result.to_json()).decode(), nl=False)
        elif as_markdown:
            from etips.results.bench_result import as_markdown as written  # noqa: PLC0415

            typer.echo(written(result), nl=False)
        else:
            _print(result, place)


def write_bench(result: "Bench", folder: Path) -> None:
    """Write results.json, figures/bench.svg and .png, and report.html."""
    from etips.report.bench_page import render_bench  # noqa: PLC0415
    from etips.results.bench_result import gain_chart  # noqa: PLC0415

    write_page(folder, result.to_json(), [gain_chart(result)], render_bench(result))


def _names(option: str, text: str | None) -> list[str] | None:
    if text is None:
        return None
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise SettingError(option, "must name at least one")
    return names


def _print(result: "Bench", folder: Path) -> None:
    from etips.results.bench_result import (  # noqa: PLC0415
        NOTES,
        failures,
        summary_table,
        world_table,
    )

    console = page_console()
    print_plain(console, result.lead)
    for own in result.standings:
        print_titled(world_table(own), console)
        print_plain(console, *own.why, *failures(own))
    print_titled(summary_table(result), console)
    print_plain(console, NOTES)
    if result.absent:
        print_plain(console, f"Peers that are not installed: {', '.join(result.absent)}.")
    typer.echo(f"Open {folder / REPORT}, or read {folder / RESULTS}.")
