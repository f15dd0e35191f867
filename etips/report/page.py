"""Results as one HTML file that loads nothing from elsewhere, or as a table for a spreadsheet.

The page shows what the results hold and computes nothing new about the data: it is made of what is
in `results.json`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from etips.files.writing import write_file
from etips.report.finding import FINDING
from etips.report.section import Section, fill, render_page, require_ending
from etips.report.sections.evidence import (
    CONFOUNDING,
    CONTROL,
    ESTIMATORS,
    MISSING_LOSSES,
    WHOLE_STAY,
)
from etips.report.sections.patients import ACTIONS, BALANCE, OVERLAP, SUBGROUPS
from etips.report.sections.policies import CHOICES, FOLDS, PATHS, POLICIES, SHIFT
from etips.report.sections.record import CHECKLIST, FLOW, SETTINGS
from etips.report.tables import policies_csv
from etips.report.wording import clean
from etips.results.results import Results
from etips.results.study_result import StudyResult

SECTIONS = (
    POLICIES,
    SHIFT,
    FOLDS,
    WHOLE_STAY,
    ESTIMATORS,
    CHOICES,
    PATHS,
    ACTIONS,
    OVERLAP,
    BALANCE,
    SUBGROUPS,
    CONFOUNDING,
    CONTROL,
    MISSING_LOSSES,
    FLOW,
    SETTINGS,
    CHECKLIST,
)
"""After the finding, in order."""


def render(results: Results) -> str:
    """The page of an evaluation or a study."""
    study = results if isinstance(results, StudyResult) else None
    head = results.headline
    title = "Report" if head is None else f"Report on {clean(head.name)}"
    finding, sections = fill_sections(results, SECTIONS)
    return render_page(
        study.title if study is not None and study.title else title,
        finding,
        [(section.name, section.title, body) for section, body in sections],
        lead=None if study is None else study.lead,
        seconds=results.seconds,
    )


def fill_sections(
    results: Results, sections: Sequence[Section]
) -> tuple[Markup, list[tuple[Section, Markup]]]:
    """The finding, and those of some sections that have something to show."""
    made = [(section, section.make(results)) for section in sections]
    shown = [(section, context) for section, context in made if context is not None]
    present = {"present": {section.name for section, _ in shown} | {"finding", "notice"}}
    finding: Mapping[str, object] = FINDING.make(results) or {}
    return (
        fill(FINDING.template, {**finding, **present}),
        [(section, fill(section.template, {**context, **present})) for section, context in shown],
    )


def write_report(results: Results, place: Path) -> Path:
    """Write a page (.html) or the table of the policies (.csv); return where it is."""
    require_ending(place, ".html", ".csv")
    page = render(results) if place.suffix == ".html" else policies_csv(results)
    write_file(place, page.encode())
    return place
