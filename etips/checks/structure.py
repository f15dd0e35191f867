"""How the rows of a table lie in its stays: what repeats, what stays the same, what orders them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from etips.checks.column_facts import Codes, codes_of, hours_of
from etips.data.tables.sources import Source


@dataclass(frozen=True)
class Structure:
    """The rows of a table by stay.

    Args:
        source: The table.
        stay: Column of the stay.
    """

    source: Source
    stay: str

    @cached_property
    def _order(self) -> tuple[Codes, Codes]:
        """Rows sorted by stay, and where each stay begins."""
        codes = codes_of(self.source, self.stay)
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=codes.min() - 1))
        return order, starts

    @property
    def n_stays(self) -> int:
        """How many stays there are."""
        return self._order[1].size

    @property
    def longest(self) -> int:
        """Rows of the longest stay."""
        order, starts = self._order
        return int(np.diff(np.append(starts, order.size)).max(initial=0))

    def is_constant(self, column: str) -> bool:
        """Whether a column has one value in each stay; a gap is no other value."""
        order, starts = self._order
        codes = codes_of(self.source, column)[order]
        most = np.maximum.reduceat(codes, starts)
        least = np.minimum.reduceat(np.where(codes < 0, np.iinfo(np.int64).max, codes), starts)
        return bool(((most < 0) | (most == least)).all())

    def is_unique(self, column: str) -> bool:
        """Whether no value of a column occurs twice in a stay."""
        order, starts = self._order
        codes = codes_of(self.source, column)
        stay = np.zeros(codes.size, np.int64)
        stay[order] = np.repeat(np.arange(starts.size), np.diff(np.append(starts, order.size)))
        pairs = stay * (codes.max(initial=0) + 2) + codes + 1
        return bool(np.unique(pairs).size == pairs.size and (codes >= 0).all())

    def hours_per_row(self, column: str) -> float | None:
        """Hours that a stay lasts for each of its rows, the median stay; None if not known."""
        order, starts = self._order
        hours = hours_of(self.source, column)[order]
        last = np.fmax.reduceat(hours, starts)
        span = last - np.fmin.reduceat(hours, starts)
        rows = np.diff(np.append(starts, order.size))
        each = (span / rows)[np.isfinite(span) & (span > 0)]
        return float(np.median(each)) if each.size else None
