"""`etips report`: results as a page to read, or as a table for a spreadsheet."""

from pathlib import Path
from typing import Annotated

import typer

from etips.report.comparison_page import write_comparison
from etips.report.finding import one_line
from etips.report.section import require_ending
from etips.results.comparison_result import Comparison
from etips.results.parsing import read_anything


def report(
    run: Annotated[
        Path, typer.Argument(help="A folder that holds results.json, or such a file itself.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(help="Page to write, .html, or table of the policies, .csv. Default: in RUN."),
    ] = None,
) -> None:
    """Write results as one self-contained page: finding, evidence, overlap, subgroups, record.

    `etips evaluate RUN DATA` leaves the results in the run folder; `etips demo` and
    `etips reproduce` in theirs; `etips compare --out FILE.json` in that file. The page loads
    nothing from anywhere.
    """
    place = out or (run if run.is_dir() else run.parent) / "report.html"
    require_ending(place, ".html", ".csv")
    results = read_anything(run)
    if isinstance(results, Comparison):
        write_comparison(results, place)
        typer.echo(f"{place}: comparison of {len(results.policies)} ways to decide")
        return
    from etips.report.page import write_report  # noqa: PLC0415  # with matplotlib

    write_report(results, place)
    typer.echo(f"{place}: {one_line(results)}")
