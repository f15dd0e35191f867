"""A bench as a page: who leads in which world, how far ours is behind, and why."""

from collections.abc import Mapping

from markupsafe import Markup

from etips.report.maps import HATCH
from etips.report.page import environment
from etips.report.row_plots import Axis, Row, interval_rows
from etips.report.svg import Scale
from etips.report.wording import clean, signed
from etips.results.bench_result import Bench, BenchRow, BenchStanding
from etips.results.bench_tables import NOTES, failures, summary_table, world_table
from etips.results.exhibits import NOTICE

_COLOURS = {"ours": "c0", "told": "c3", "simple": "c5", "peer": "c1"}
_GROUPS = (
    ("ours", "of this package"),
    ("told", "the same, told the true propensities: not ranked"),
    ("simple", "learns nothing of patients"),
    ("peer", "another package, shown the summary of the history"),
)


def render_bench(bench: Bench) -> str:
    """The page; it loads nothing from anywhere."""
    sections = [
        ({"name": own.world, "title": own.world}, _body("bench_world.html", _world(own, bench)))
        for own in bench.standings
    ]
    sections.append(
        ({"name": "record", "title": "How it was made"}, _body("bench_record.html", _record(bench)))
    )
    return (
        environment()
        .get_template("page.html")
        .render(
            title="Methods side by side, where the truth is known",
            lead=bench.lead,
            notice=NOTICE,
            hatch=HATCH,
            finding=_body("bench_finding.html", _finding(bench)),
            sections=sections,
            seconds=bench.seconds,
        )
    )


def _body(template: str, context: Mapping[str, object]) -> Markup:
    return Markup(environment().get_template(template).render(**context))  # noqa: S704


def _finding(bench: Bench) -> dict[str, object]:
    known = [own for own in bench.standings if own.ours_level is not None]
    return {
        "bench": bench,
        "level": sum(bool(own.ours_level) for own in known),
        "known": len(known),
        "behind": [own for own in known if not own.ours_level],
        "table": summary_table(bench),
    }


def _world(own: BenchStanding, bench: Bench) -> dict[str, object]:
    return {
        "own": own,
        "table": world_table(own),
        "plot": behind_plot(own),
        "failures": failures(own),
        "labels": bench.labels,
        "notes": NOTES,
    }


def _record(bench: Bench) -> dict[str, object]:
    return {
        "bench": bench,
        "groups": [
            (words, [row.method for row in _everybody(bench) if row.group == group])
            for group, words in _GROUPS
        ],
        "notes": NOTES,
    }


def _everybody(bench: Bench) -> tuple[BenchRow, ...]:
    return bench.standings[0].rows if bench.standings else ()


def behind_plot(own: BenchStanding) -> Markup:
    """How far each method is behind the first, with one standard error either way."""
    rows = [
        Row(
            clean(row.method, 24),
            row.behind,
            None if row.behind is None else row.behind - (row.behind_error or 0.0),
            None if row.behind is None else row.behind + (row.behind_error or 0.0),
            "failed" if row.behind is None else signed(row.behind, 4),
            strong=row.place in ("first", "level"),
            colour=_COLOURS[row.group],
        )
        for row in own.rows
    ]
    ends = [end for row in rows for end in (row.value, row.low, row.high)]
    axis = Axis(Scale.around([*ends, 0.0], 0, 100), "behind the first (left is better)", 0.0)
    return interval_rows(rows, axis, f"{own.world}: risk beyond that of the first")
