"""Results written as a file to look at: a page, or a table for a spreadsheet."""

from pathlib import Path

from etips.errors import FileError
from etips.files.writing import write_file
from etips.report.csv_export import policies_csv
from etips.report.page import render
from etips.results.results import Results


def require_ending(place: Path) -> None:
    """Refuse a name that does not say what to write."""
    if place.suffix not in (".html", ".csv"):
        raise FileError(str(place), "must end in .html or .csv")


def write_report(results: Results, place: Path) -> Path:
    """Write a page (.html) or the table of the policies (.csv); return where it is."""
    require_ending(place)
    page = render(results) if place.suffix == ".html" else policies_csv(results)
    write_file(place, page.encode())
    return place
