"""Cohort and missing values: from all stays to those evaluated, and what was not charted."""

from etips.report.section import Section
from etips.results.results import Results


def _make(results: Results) -> dict[str, object] | None:
    if results.exhibits is None:
        return None
    flow = results.exhibits.flow
    most = max((stage.count or 0 for stage in flow.stages), default=0) or 1
    return {
        "flow": flow,
        "stages": [(stage, 100 * (stage.count or 0) / most) for stage in flow.stages],
        "missingness": results.exhibits.missingness,
    }


SECTION = Section("flow", "Cohort and missing values", "cohort_flow.html", _make)
