"""The reporting checklist: where the page answers each item of TRIPOD+AI, or why it cannot."""

from etips.report.section import Section
from etips.report.tripod import ITEMS
from etips.results.results import Results


def _make(results: Results) -> dict[str, object]:  # noqa: ARG001  # the same for every page
    return {"items": ITEMS}


SECTION = Section("tripod", "Reporting checklist", "checklist.html", _make)
