"""The funnel as a flow diagram: plain SVG, readable on a light and on a dark page."""

from collections.abc import Sequence
from html import escape
from typing import Final

from etips.cohorts.dataset.funnel import Funnel

_WIDTH, _BOX, _HEIGHT, _GAP, _TOP = 640, 400, 44, 26, 80
_STYLE: Final = (
    "svg{color-scheme:light dark;font:14px sans-serif}"
    ".page{fill:#fff}.box{fill:#f3f6f9;stroke:#5b6b7b}.ink{fill:#1c2630}"
    ".quiet{fill:#4d5a67}.line{stroke:#5b6b7b;fill:none}"
    "@media (prefers-color-scheme:dark){.page{fill:#14191f}.box{fill:#1f2831;stroke:#8fa1b3}"
    ".ink{fill:#edf2f7}.quiet{fill:#b6c2ce}.line{stroke:#8fa1b3}}"
)


def draw_funnel(funnel: Funnel) -> str:
    """From all stays to the decisions, top to bottom, as the text of an SVG file.

    A count of 1 to 10 stays is not shown, nor one whose difference from another would tell it.
    """
    shown = funnel.shown
    boxes = [
        (stage.name, _count(count, "stays"), _left_out(shown.stages, position))
        for position, (stage, count) in enumerate(zip(funnel.stages, shown.stages, strict=True))
    ]
    samples = dict(zip(funnel.n_samples, shown.samples, strict=True))
    boxes.append(("steps", _count(shown.rows, "rows"), ""))
    boxes.append(("decisions", _count(samples["A"], "samples (reading A)"), ""))
    height = _TOP + len(boxes) * (_HEIGHT + _GAP)
    title = f"Sepsis-3 cohort, profile {funnel.profile}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        f'<text class="ink" x="24" y="36" font-size="18">{escape(title)}</text>',
        '<text class="quiet" x="24" y="60">A count that would tell of 1 to 10 stays is not shown.'
        "</text>",
    ]
    for number, (name, count, note) in enumerate(boxes):
        top = _TOP + number * (_HEIGHT + _GAP)
        parts += _box(top, name, count, note)
        if number:
            parts.append(_arrow(top))
    return "\n".join([*parts, "</svg>", ""])


def _count(count: int | None, unit: str) -> str:
    return "not shown" if count is None else f"{count:,} {unit}"


def _left_out(shown: Sequence[int | None], position: int) -> str:
    """How many fewer than in the box above; blank where stays of another kind are counted."""
    above, here = (shown[position - 1] if position else None), shown[position]
    if above is None or here is None or here >= above:
        return ""
    return f"{above - here:,} fewer"


def _box(top: int, name: str, count: str, note: str) -> list[str]:
    return [
        f'<rect class="box" x="24" y="{top}" width="{_BOX}" height="{_HEIGHT}" rx="5"/>',
        f'<text class="ink" x="36" y="{top + 18}">{escape(name)}</text>',
        f'<text class="ink" x="36" y="{top + 36}" font-weight="bold">{escape(count)}</text>',
        f'<text class="quiet" x="{_BOX + 40}" y="{top + 26}">{escape(note)}</text>',
    ]


def _arrow(top: int) -> str:
    middle, start = 24 + _BOX // 2, top - _GAP
    return f'<path class="line" d="M{middle} {start}V{top - 2}m-5 -6l5 6l5 -6"/>'
