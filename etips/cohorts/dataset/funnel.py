"""What happened to the stays on the way, in counts and as a drawing (rules.md section 18.3)."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from html import escape
from typing import Final, Self

import polars as pl
from pydantic import TypeAdapter

from etips.disclosure import (
    FEW,
    ShownFunnel,
    any_few,
    are_few,
    hide_together,
    shown_apart,
    shown_funnel,
)
from etips.errors import DataError

_WIDTH, _BOX, _HEIGHT, _GAP, _TOP = 640, 400, 44, 26, 80
_STYLE: Final = (
    "svg{color-scheme:light dark;font:14px sans-serif}"
    ".page{fill:#fff}.box{fill:#f3f6f9;stroke:#5b6b7b}.ink{fill:#1c2630}"
    ".quiet{fill:#4d5a67}.line{stroke:#5b6b7b;fill:none}"
    "@media (prefers-color-scheme:dark){.page{fill:#14191f}.box{fill:#1f2831;stroke:#8fa1b3}"
    ".ink{fill:#edf2f7}.quiet{fill:#b6c2ce}.line{stroke:#8fa1b3}}"
)


@dataclass(frozen=True)
class Stage:
    """One step of the funnel: how many stays are left after it; None where a file hides it."""

    name: str
    n_stays: int | None


@dataclass(frozen=True)
class Funnel:
    """From all stays to the samples.

    A gap is a missing stretch of blocks inside a stay. Samples are by reading A, B and C of section
    18.2, the history (shortest, mean, longest, in rows) and the mean loss those of samples A; the
    missing share is of each charted column before imputation, pass 2. A file holds null where a
    number would tell of 1 to 10 people; see `to_document`.
    """

    profile: str
    antibiotic_order: str
    stages: tuple[Stage, ...]
    n_rows: int | None
    n_single_row_stays: int | None
    n_gaps: int | None
    n_gaps_after_first_row: int | None
    n_samples: Mapping[str, int | None]
    history: tuple[int, float, int]
    mean_loss: float
    action_counts: tuple[int | None, ...]
    missing_share: Mapping[str, float | None]

    @property
    def shown(self) -> ShownFunnel:
        """What may be told of it, samples in the order of `n_samples`."""
        stages = [stage.n_stays for stage in self.stages]
        return shown_funnel(stages, self.n_rows, list(self.n_samples.values()))

    def to_document(self) -> dict[str, object]:
        """What `funnel.json` holds: null where the drawing hides a number, or would have to."""
        shown = self.shown
        rest = (self.n_single_row_stays, self.n_gaps, self.n_gaps_after_first_row)
        single, gaps, first = shown_apart(rest, known=shown.counts)
        stages = zip(self.stages, shown.stages, strict=True)
        counts = [count or 0 for count in self.action_counts]
        hidden = hide_together(counts)
        return {
            **asdict(self),
            "stages": [{"name": stage.name, "n_stays": left} for stage, left in stages],
            "n_rows": shown.rows,
            "n_single_row_stays": single,
            "n_gaps": gaps,
            "n_gaps_after_first_row": first,
            "n_samples": dict(zip(self.n_samples, shown.samples, strict=True)),
            "mean_loss": _shown_share(self.mean_loss, self.n_samples["A"]),
            "action_counts": [
                None if unseen else count for count, unseen in zip(counts, hidden, strict=True)
            ],
            "missing_share": {
                name: _shown_share(share, self.n_rows) for name, share in self.missing_share.items()
            },
        }

    @classmethod
    def from_json(cls, content: Mapping[str, object]) -> Self:
        """Read `funnel.json`; null stands for no number."""
        loss = content["mean_loss"]
        known = {**content, "mean_loss": math.nan if loss is None else loss}
        return TypeAdapter(cls).validate_python(known)


def _shown_share(share: float | None, total: int | None) -> float | None:
    """A share, unless it or its complement is one of 1 to 10."""
    if share is None or total is None or math.isnan(share):
        return None
    events = round(share * total)
    return None if any_few((events, total - events)) else share


def require_stays(stages: list[Stage]) -> None:
    """Refuse to go on when a step of the funnel leaves nobody."""
    if stages[-1].n_stays == 0:
        n = (stages[-2].n_stays or 0) if len(stages) > 1 else 0
        before = f" (before it: {FEW if are_few(n) else n})" if len(stages) > 1 else ""
        raise DataError(
            "cohort",
            f"must keep at least one stay; none is left at: {stages[-1].name}{before}",
            fix="See the funnel in the documentation of the cohort.",
        )


def count_gaps(table: pl.DataFrame) -> tuple[int, int]:
    """Gaps between the blocks of a stay, and those right after its first row."""
    gap = (pl.col("bloc").diff() > 1).over("icustayid").fill_null(False)
    second = pl.int_range(pl.len()).over("icustayid") == 1
    counts = table.select(gap.sum().alias("all"), (gap & second).sum().alias("first"))
    return int(counts["all"][0]), int(counts["first"][0])


def missing_shares(rows: pl.DataFrame, names: tuple[str, ...]) -> dict[str, float]:
    """Share of rows in which each column is missing."""
    shares = rows.select(pl.col(names).is_nan().mean())
    return {name: float(shares[name][0]) for name in names}


def draw_funnel(funnel: Funnel) -> str:
    """From all stays to the decisions, top to bottom, as the text of an SVG file.

    A count of 1 to 10 stays is not shown, nor one whose difference from another would tell it.
    """
    shown = funnel.shown
    boxes, above = [], None
    for stage, count in zip(funnel.stages, shown.stages, strict=True):
        # blank where a count is hidden, and where stays of another kind are counted
        fewer = 0 if above is None or count is None else above - count
        boxes.append((stage.name, count, "stays", f"{fewer:,} fewer" if fewer > 0 else ""))
        above = count
    samples = dict(zip(funnel.n_samples, shown.samples, strict=True))
    boxes.append(("steps", shown.rows, "rows", ""))
    boxes.append(("decisions", samples["A"], "samples (reading A)", ""))
    height = _TOP + len(boxes) * (_HEIGHT + _GAP)
    title = escape(f"Sepsis-3 cohort, profile {funnel.profile}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        f"<title>{title}</title><style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}"/>',
        f'<text class="ink" x="24" y="36" font-size="18">{title}</text>',
        '<text class="quiet" x="24" y="60">A count that would tell of 1 to 10 stays is not shown.'
        "</text>",
    ]
    for number, (name, count, unit, note) in enumerate(boxes):
        top, figure = _TOP + number * (_HEIGHT + _GAP), "not shown"
        if count is not None:
            figure = f"{count:,} {unit}"
        parts += [
            f'<rect class="box" x="24" y="{top}" width="{_BOX}" height="{_HEIGHT}" rx="5"/>',
            f'<text class="ink" x="36" y="{top + 18}">{escape(name)}</text>',
            f'<text class="ink" x="36" y="{top + 36}" font-weight="bold">{escape(figure)}</text>',
            f'<text class="quiet" x="{_BOX + 40}" y="{top + 26}">{escape(note)}</text>',
        ]
        if number:
            start = f"M{24 + _BOX // 2} {top - _GAP}"
            parts.append(f'<path class="line" d="{start}V{top - 2}m-5 -6l5 6l5 -6"/>')
    return "\n".join([*parts, "</svg>", ""])
