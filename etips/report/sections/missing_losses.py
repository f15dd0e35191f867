"""Losses that were not observed: how many, of which actions, and what they could have been."""

from etips.report.section import Section
from etips.report.wording import clean
from etips.results.results import Results


def _make(results: Results) -> dict[str, object] | None:
    missing = results.data.missing_loss
    if missing is None:
        return None
    names = results.data.actions
    rows = [
        (clean(names[own.action]) if names else f"action {own.action}", own)
        for own in sorted(missing.by_action, key=lambda own: -own.n_missing / own.n_taken)
    ]
    head = results.headline
    found = None if head is None else head.missing_loss
    return {
        "missing": missing,
        "rows": rows,
        "main": head,
        "bounds": () if found is None else found.bounds,
        "gamma": None if found is None else found.gamma_point,
    }


SECTION = Section("missing-losses", "Missing losses", "missing_losses.html", _make)
