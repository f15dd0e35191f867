"""`etips bench`: every method, and what a user would pick instead, where the truth is known."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from etips.cli.console import (
    JobsOption,
    JsonFlag,
    MarkdownFlag,
    page_console,
    print_plain,
    progress_bar,
)
from etips.cli.study_output import REPORT, make_folder, print_titled, write_page
from etips.errors import SettingError
from etips.files.json_documents import canonical
from etips.runs.places import RESULTS, Device

if TYPE_CHECKING:
    from etips.results.bench_result import Bench


def bench(
    worlds: Annotated[
        str | None,
        typer.Option(help="Worlds, commas between; all if left out, four with --quick."),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(help="Methods and peers, commas between; all methods if left out."),
    ] = None,
    peers: Annotated[
        bool, typer.Option("--peers", help="Also the other packages that are installed.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A run in minutes; figures say nothing.")
    ] = False,
    out: Annotated[Path, typer.Option(help="Folder to write.")] = Path("bench"),
    jobs: JobsOption = None,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each world.")] = 1,
    stays: Annotated[
        int | None,
        typer.Option(help="Most stays to learn from, and to judge by, in a world.", min=50),
    ] = None,
    trial: Annotated[
        Path | None, typer.Option(help="IST.csv of the stroke trial, which is a world then.")
    ] = None,
    device: Annotated[Device, typer.Option(help="Where our networks train.")] = Device.CPU,
    as_json: JsonFlag = False,
    as_markdown: MarkdownFlag = False,
) -> None:
    """Run every method in every world with known truth: who is best, by how much, at what cost.

    Interrupted, the same command goes on where it stopped; with more worlds, methods or seeds it
    adds them. Writes results.json, report.html and figures.
    """
    if as_json and as_markdown:
        raise SettingError("--json, --markdown", "must not both be given")
    with progress_bar() as progress:
        progress("getting ready", 0.0)
        from etips.bench.bench_run import (  # noqa: PLC0415
            BenchPlan,
            choose_contestants,
            choose_worlds,
            run_bench,
        )
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
    else:
        _print(result, place, as_markdown=as_markdown)


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


def _print(result: "Bench", folder: Path, *, as_markdown: bool) -> None:
    from etips.results import bench_result as texts  # noqa: PLC0415

    if as_markdown:
        typer.echo(texts.as_markdown(result), nl=False)
        return
    console = page_console()
    print_plain(console, result.lead)
    for own in result.standings:
        print_titled(texts.world_table(own), console)
        print_plain(console, *own.why, *texts.failures(own))
    print_titled(texts.summary_table(result), console)
    print_plain(console, texts.NOTES)
    if result.absent:
        print_plain(console, f"Peers that are not installed: {', '.join(result.absent)}.")
    typer.echo(f"Open {folder / REPORT}, or read {folder / RESULTS}.")
