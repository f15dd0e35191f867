"""Results as one HTML file that loads nothing from elsewhere.

The page shows what the results hold and computes nothing new about the data, so that whoever has
`results.json` has all that the page is made of.
"""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from etips.report import wording
from etips.report.finding import FINDING
from etips.report.maps import HATCH
from etips.report.section import Section
from etips.report.sections import (
    balance,
    candidate_path,
    checklist,
    cohort_flow,
    confounding,
    control,
    estimator_comparison,
    missing_losses,
    policy_table,
    propensity_overlap,
    recommended_actions,
    reproducibility,
    subgroup_tables,
    whole_stay_risk,
)
from etips.results.exhibits import NOTICE
from etips.results.results import Results
from etips.results.study_result import StudyResult

SECTIONS = (
    policy_table.SECTION,
    whole_stay_risk.SECTION,
    estimator_comparison.SECTION,
    candidate_path.SECTION,
    recommended_actions.SECTION,
    propensity_overlap.SECTION,
    balance.SECTION,
    subgroup_tables.SECTION,
    confounding.SECTION,
    control.SECTION,
    missing_losses.SECTION,
    cohort_flow.SECTION,
    reproducibility.SECTION,
    checklist.SECTION,
)
"""After the finding, in order."""


def render(results: Results) -> str:
    """The page of an evaluation or a study."""
    bodies = [(section, _body(section, results)) for section in SECTIONS]
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=_title(results),
            lead=results.lead if isinstance(results, StudyResult) else None,
            notice=NOTICE,
            hatch=HATCH,
            finding=_body(FINDING, results),
            sections=[(section, body) for section, body in bodies if body is not None],
            seconds=results.seconds,
        )
    )


def _title(results: Results) -> str:
    if isinstance(results, StudyResult) and results.title:
        return results.title
    head = results.headline
    return "Report" if head is None else f"Report on {wording.clean(head.name)}"


def _body(section: Section, results: Results) -> Markup | None:
    context = section.make(results)
    if context is None:
        return None
    return Markup(_environment().get_template(section.template).render(**context))  # noqa: S704


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("etips.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = (wording.name, wording.clean, wording.cell, wording.badge)
    counted = (wording.number, wording.signed, wording.count, wording.percent)
    environment.filters |= {show.__name__: show for show in (*shown, *counted)}
    return environment
