"""A results table as one HTML file that loads nothing from elsewhere."""

from collections.abc import Mapping, Sequence
from html import escape

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #888; --bar: #2a78b8; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; line-height: 1.2; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .45rem .6rem; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; }
td.chart { width: 40%; } td.chart div { background: var(--bar); height: .8rem; border-radius: 2px; }
footer { color: var(--soft); font-size: .85rem; margin-top: 2rem; }
"""


def results_page(
    title: str, lead: str, rows: Sequence[Mapping[str, object]], *, chart: str, footer: str
) -> str:
    """A page with one table; every text is escaped, whatever it holds.

    Args:
        title: Heading of the page.
        lead: What the table shows, in a sentence or two.
        rows: The table, all rows with the same columns.
        chart: A column of numbers in 0..1 that is also drawn as a bar.
        footer: Small print.
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0]) + "<th></th>"
    body = "\n".join(f"<tr>{_row(row, chart)}</tr>" for row in rows)
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<style>{_STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<p>{escape(lead)}</p>
<table><thead><tr>{head}</tr></thead><tbody>
{body}
</tbody></table>
<footer>{escape(footer)}</footer>
</body></html>
"""


def _row(row: Mapping[str, object], chart: str) -> str:
    cells = "".join(f"<td>{escape(_text(value))}</td>" for value in row.values())
    share = row[chart]
    width = 100 * min(max(share, 0.0), 1.0) if isinstance(share, float) else 0.0
    return cells + f'<td class="chart"><div style="width:{width:.1f}%"></div></td>'


def _text(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
