"""The first page: what was found, and what the policy does, in the words of the report."""

from collections.abc import Mapping

from markupsafe import Markup

from etips.report.finding import FINDING
from etips.report.page import environment
from etips.report.section import Section
from etips.report.sections import candidate_path, policy_table, recommended_actions
from etips.results.results import Results
from etips.serve.desk import Desk
from etips.serve.templating import render, without_styles

SECTIONS = (policy_table.SECTION, recommended_actions.SECTION, candidate_path.SECTION)
"""Of the report; the rest is in `etips report`."""


def show_overview(desk: Desk) -> str:
    """The page."""
    results = desk.record.results
    made = [] if results is None else _sections(results)
    present = {section.name for section, _ in made} | {"finding", "notice"}
    finding = None
    if results is not None:
        finding = _body(FINDING, FINDING.make(results) or {}, present)
    return render(
        "overview.html",
        here="overview",
        title=desk.record.name,
        card=desk.card,
        desk=desk,
        finding=finding,
        sections=[(section, _body(section, context, present)) for section, context in made],
    )


def verdict_of(results: Results | None) -> str | None:
    """The verdict on the policy that is served; None where nobody evaluated it."""
    head = None if results is None else results.headline
    return None if head is None else head.verdict


def _sections(results: Results) -> list[tuple[Section, Mapping[str, object]]]:
    contexts = [(section, section.make(results)) for section in SECTIONS]
    return [(section, context) for section, context in contexts if context is not None]


def _body(section: Section, context: Mapping[str, object], present: set[str]) -> Markup:
    page = environment().get_template(section.template).render(**context, present=present)
    return without_styles(page)
