"""A bench as a page: who leads in which world, how far ours is behind, and why."""

from markupsafe import Markup

from etips.report.drawings import Axis, Mark, Scale, interval, rows
from etips.report.section import fill, render_page
from etips.report.wording import clean, signed
from etips.results.bench_result import (
    NOTES,
    Bench,
    BenchStanding,
    failures,
    summary_table,
    world_table,
)

_GROUPS = {
    "ours": ("c0", "of this package"),
    "told": ("c3", "the same, told the true propensities: not ranked"),
    "simple": ("c5", "learns nothing of patients"),
    "peer": ("c1", "another package, shown the summary of the history"),
}
"""Colour and meaning of each group of methods."""


def render_bench(bench: Bench) -> str:
    """The page; it loads nothing from anywhere."""
    known = [own for own in bench.standings if own.ours_level is not None]
    methods = bench.standings[0].rows if bench.standings else ()
    groups = [
        (words, [row.method for row in methods if row.group == group])
        for group, (_, words) in _GROUPS.items()
    ]
    finding = {
        "level": sum(bool(own.ours_level) for own in known),
        "known": len(known),
        "behind": [own for own in known if not own.ours_level],
        "table": summary_table(bench),
    }
    sections = []
    for own in bench.standings:
        context = {
            "own": own,
            "table": world_table(own),
            "plot": behind_plot(own),
            "failures": failures(own),
        }
        sections.append((own.world, own.world, fill("bench_world.html", context)))
    record = fill("bench_record.html", {"bench": bench, "groups": groups, "notes": NOTES})
    return render_page(
        "Methods side by side, where the truth is known",
        fill("bench_finding.html", finding),
        [*sections, ("record", "How it was made", record)],
        lead=bench.lead,
        seconds=bench.seconds,
    )


def behind_plot(own: BenchStanding) -> Markup:
    """How far each method is behind the first, with one standard error either way."""
    ends, drawn = [0.0], []
    for row in own.rows:
        behind, error = row.behind, row.behind_error or 0.0
        figures = (None,) * 3 if behind is None else (behind, behind - error, behind + error)
        ends += [end for end in figures if end is not None]
        words = "failed" if behind is None else signed(behind, 4)
        strong, colour = row.place in ("first", "level"), _GROUPS[row.group][0]
        drawn.append(interval(clean(row.method, 24), figures, words, strong=strong, colour=colour))
    axis = Axis(Scale.around(ends), "behind the first (left is better)", [Mark("guide", 0.0)])
    return rows(drawn, axis, f"{own.world}: risk beyond that of the first")
