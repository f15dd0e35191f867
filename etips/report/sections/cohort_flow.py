"""Cohort and missing values: from all stays to those evaluated, and what was not charted."""

from collections.abc import Sequence

from etips.report.section import Section
from etips.results.results import Results

Step = tuple[str, int | None]
"""What was counted, and how many."""


def _make(results: Results) -> dict[str, object] | None:
    if results.exhibits is None:
        return None
    flow = results.exhibits.flow
    most = max((stage.count or 0 for stage in flow.stages), default=0) or 1
    stays = _together([(stage.name, stage.count) for stage in flow.stages])
    rows = [("steps in these stays", flow.n_steps), ("decisions evaluated", flow.n_decisions)]
    return {
        "flow": flow,
        "stages": [
            *((name, count, 100 * (count or 0) / most) for name, count in stays),
            *((name, count, 0.0) for name, count in _together(rows)),
        ],
        "missingness": results.exhibits.missingness,
    }


SECTION = Section("flow", "Cohort and missing values", "cohort_flow.html", _make)


def _together(steps: Sequence[Step]) -> list[Step]:
    """Steps of the same count share a row."""
    merged: list[Step] = []
    for name, count in steps:
        if merged and count is not None and merged[-1][1] == count:
            merged[-1] = (f"{merged[-1][0]}; {name}", count)
        else:
            merged.append((name, count))
    return merged
