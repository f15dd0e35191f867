"""Negative control: what the method "finds" where no action can have done anything."""

from etips.report.section import Section
from etips.results.results import Results


def _make(results: Results) -> dict[str, object] | None:
    found = [
        (method, method.negative_control)
        for method in results.methods
        if method.negative_control is not None
    ]
    if not found:
        return None
    first = found[0][1]
    return {
        "control": first,
        "rows": [(method, own, _in_spreads(own.difference, own.spread)) for method, own in found],
    }


SECTION = Section("negative-control", "Negative control", "control.html", _make)


def _in_spreads(difference: float | None, spread: float | None) -> float | None:
    return None if difference is None or not spread else difference / spread
