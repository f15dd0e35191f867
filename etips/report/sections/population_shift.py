"""Shift: how these data differ from those that the policy learned from."""

from etips.report.section import Section
from etips.results.results import Results

_MOST = 8


def _make(results: Results) -> dict[str, object] | None:
    shift = results.shift
    if shift is None:
        return None
    moved = sorted(shift.actions, key=lambda own: -abs((own.here or 0.0) - (own.there or 0.0)))
    return {"shift": shift, "actions": moved[:_MOST], "n_actions": len(shift.actions)}


SECTION = Section("shift", "From where it was learned to here", "population_shift.html", _make)
