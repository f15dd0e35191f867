"""Results as one HTML file that loads nothing from elsewhere.

The page shows what the results hold and computes nothing new about the data, so that whoever has
`results.json` has all that the page is made of.
"""

from collections.abc import Mapping
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
    population_shift,
    propensity_overlap,
    recommended_actions,
    reproducibility,
    study_folds,
    subgroup_tables,
    whole_stay_risk,
)
from etips.results.exhibits import NOTICE
from etips.results.results import Results
from etips.results.study_result import StudyResult

SECTIONS = (
    policy_table.SECTION,
    population_shift.SECTION,
    study_folds.SECTION,
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
    contexts = [(section, section.make(results)) for section in SECTIONS]
    shown = [(section, context) for section, context in contexts if context is not None]
    present = {section.name for section, _ in shown} | {"finding", "notice"}
    return (
        environment()
        .get_template("page.html")
        .render(
            title=_title(results),
            lead=results.lead if isinstance(results, StudyResult) else None,
            notice=NOTICE,
            hatch=HATCH,
            finding=_body(FINDING, FINDING.make(results) or {}, present),
            sections=[(section, _body(section, context, present)) for section, context in shown],
            seconds=results.seconds,
        )
    )


def _title(results: Results) -> str:
    if isinstance(results, StudyResult) and results.title:
        return results.title
    head = results.headline
    return "Report" if head is None else f"Report on {wording.clean(head.name)}"


def _body(section: Section, context: Mapping[str, object], present: set[str]) -> Markup:
    template = environment().get_template(section.template)
    return Markup(template.render(**context, present=present))  # noqa: S704


@cache
def environment() -> Environment:
    """Where templates are found, and what they may call."""
    templates = Environment(
        loader=PackageLoader("etips.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = (wording.name, wording.clean, wording.cell, wording.badge, wording.found)
    counted = (wording.number, wording.signed, wording.count, wording.percent)
    templates.filters |= {show.__name__: show for show in (*shown, *counted)}
    return templates
