"""Results as one HTML file that loads nothing from elsewhere, or as a table for a spreadsheet.

The page shows what the results hold and computes nothing new about the data: it is made of what is
in `results.json`.
"""

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from etips.files.writing import write_file
from etips.report import evidence_sections as evidence
from etips.report import patient_sections as patients
from etips.report import policy_sections as policies
from etips.report import record_sections as record
from etips.report.finding import summarize_finding
from etips.report.section import Section, fill, render_page, require_ending
from etips.report.tables import policies_csv
from etips.report.wording import clean
from etips.results.results import Results
from etips.results.study_result import StudyResult

SECTIONS = (
    Section("policies", "The policies", "policy_table.html", policies.table),
    Section("shift", "From where it was learned to here", "population_shift.html", policies.shift),
    Section("folds", "Fold by fold", "study_folds.html", policies.folds),
    Section(
        "whole-stay",
        "One decision, or the whole stay",
        "whole_stay_risk.html",
        evidence.whole_stay,
    ),
    Section("evidence", "How the evidence holds", "estimator_comparison.html", evidence.estimators),
    Section(
        "choice",
        "What was tried, what was kept, and why",
        "policy_choice.html",
        policies.choices,
    ),
    Section("path", "The translation path", "candidate_path.html", policies.paths),
    Section(
        "actions",
        "Where the policy differs from the clinicians",
        "recommended_actions.html",
        patients.actions,
    ),
    Section("overlap", "Overlap and propensities", "propensity_overlap.html", patients.overlap),
    Section("balance", "Balance", "balance.html", patients.balance),
    Section("subgroups", "Subgroups", "subgroup_tables.html", patients.subgroups),
    Section("sensitivity", "Hidden confounding", "confounding.html", evidence.confounding),
    Section("negative-control", "Negative control", "control.html", evidence.control),
    Section("missing-losses", "Missing losses", "missing_losses.html", evidence.missing_losses),
    Section("flow", "Cohort and missing values", "cohort_flow.html", record.flow),
    Section("settings", "Settings and versions", "reproducibility.html", record.settings),
    Section(
        "tripod", "Reporting checklist", "checklist.html", lambda _: {"items": record.checklist()}
    ),
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
    return (
        fill("finding.html", summarize_finding(results)),
        [(section, fill(section.template, {**context, **present})) for section, context in shown],
    )


def write_report(results: Results, place: Path) -> Path:
    """Write a page (.html) or the table of the policies (.csv); return where it is."""
    require_ending(place, ".html", ".csv")
    page = render(results) if place.suffix == ".html" else policies_csv(results)
    write_file(place, page.encode())
    return place
