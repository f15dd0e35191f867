"""Subgroups: risk and difference among the same people, each row with a verdict of its own."""

from markupsafe import Markup

from etips.report.maps import small_interval
from etips.report.section import Section
from etips.report.svg import Scale
from etips.report.wording import signed
from etips.results.exhibits import Subgroup
from etips.results.results import Results


def _make(results: Results) -> dict[str, object] | None:
    found = () if results.exhibits is None else results.exhibits.subgroups
    tables = [table for table in found if len(table.rows) > 1 or table.rows[0].n_people is None]
    if not any(row.n_people is not None for table in tables for row in table.rows):
        return None  # one group of all is the finding again, and hidden ones say nothing
    ends = [
        abs(end)
        for table in tables
        for row in table.rows
        for end in (row.gain, row.gain_low, row.gain_high)
        if end is not None and row.verdict != "unusable"
    ]
    reach = min(max(ends, default=1.0), 1.0) * 1.08 or 1.0
    scale = Scale(-reach, reach, 4, 126)
    return {
        "tables": [
            (table.feature, [(row, _figure(row, scale)) for row in table.rows]) for table in tables
        ]
    }


SECTION = Section("subgroups", "Subgroups", "subgroup_tables.html", _make)


def _figure(row: Subgroup, scale: Scale) -> Markup | None:
    """A small interval of the gain."""
    if row.gain is None:
        return None
    label = f"difference {signed(row.gain)}, verdict {row.verdict}"
    return small_interval(row.gain, row.gain_low, row.gain_high, scale, label)
