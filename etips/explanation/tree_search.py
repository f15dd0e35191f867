"""The tree of least summed score: exact for two questions in a row, with look-ahead beyond.

Every feature is cut into bins once. The scores of all trees of two questions then follow from the
table of two features' bins, one such table a pair of features. Of deeper trees the first questions
that are best two questions deep are tried, each with the best trees below. NumPy alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from etips.data.coded import Floats32
from etips.data.decisions import Floats, Ints
from etips.policies.rule_tree import NONE, RuleTree

BINS = 16
"""Classes of a feature, at most: a tree may cut between any two of them."""

_TRIED = {3: 3, 4: 2}  # first questions that are tried, by how many may follow one another
_WORST = 1e300


@dataclass(frozen=True, eq=False)
class Cuts:
    """Features in classes.

    Args:
        code: Class of each feature in each row, those without a value in the last; (p, n).
        edges: Of each feature, where it may be cut.
        gaps: Whether a feature has rows without a value.
    """

    code: NDArray[np.int64]
    edges: tuple[Floats, ...]
    gaps: tuple[bool, ...]

    @classmethod
    def of(cls, rows: Floats32, *, bins: int = BINS) -> "Cuts":
        """Cut the columns of rows (n, p), NaN where missing, into classes of like size."""
        codes, edges, gaps = [], [], []
        for column in rows.T:
            known = column[~np.isnan(column)].astype(np.float64)
            own = _edges(known, bins)
            code = np.searchsorted(own, column, side="left")  # at most the edge: the class below
            code[np.isnan(column)] = len(own) + 1
            codes.append(code)
            edges.append(own)
            gaps.append(known.size < len(column))
        stacked = np.array(codes, np.int64).reshape(len(codes), len(rows))
        return cls(stacked, tuple(edges), tuple(gaps))

    def n_classes(self, feature: int) -> int:
        """Classes of a feature, that of rows without a value included."""
        return len(self.edges[feature]) + 2


@dataclass(frozen=True, eq=False)
class Search:
    """What a search needs.

    Args:
        cuts: The features.
        scores: Of each action at each decision, lower is better; shape (n, K).
        person: Weight of each decision such that every person counts 1 in all, shape (n,).
        least: People that a leaf must stand for.
    """

    cuts: Cuts
    scores: Floats
    person: Floats
    least: float

    @cached_property
    def columns(self) -> Floats:
        """Scores and people side by side, shape (n, K + 1)."""
        return np.column_stack([self.scores, self.person])

    def grow(self, depth: int) -> RuleTree:
        """The best tree of at most so many questions in a row."""
        places = 2 ** (depth + 1) - 1
        heap = _Heap(places)
        self._fill(heap, 0, np.arange(len(self.scores)), depth)
        return heap.tree()

    def _fill(self, heap: "_Heap", place: int, rows: Ints, depth: int) -> float:
        """Write the best tree for some rows at a place of the heap; its summed score."""
        alone = self.scores[rows].sum(axis=0)
        best = float(alone.min())
        question = None if depth == 0 else self._question(rows, depth)
        if question is None or not question.worth < best - 1e-9 * abs(best):
            heap.column[place], heap.action[place] = NONE, int(alone.argmin())
            return best
        heap.ask(place, self.cuts, question)
        low = self.is_low(rows, question)
        return self._fill(heap, 2 * place + 1, rows[low], depth - 1) + self._fill(
            heap, 2 * place + 2, rows[~low], depth - 1
        )

    def is_low(self, rows: Ints, question: "Question") -> NDArray[np.bool_]:
        """Which rows answer a question with yes."""
        code = self.cuts.code[question.feature, rows]
        gap = code == self.cuts.n_classes(question.feature) - 1
        return np.where(gap, question.missing_low, code <= question.edge)

    def _question(self, rows: Ints, depth: int) -> "Question | None":
        """The best first question for some rows, of so many in a row."""
        ahead = min(depth, 2)
        found = self.first_questions(rows, ahead)
        if depth <= 2 or not found:
            return found[0] if found else None
        tried = []
        for question in found[: _TRIED.get(depth, 3)]:
            low = self.is_low(rows, question)
            spare = _Heap(2**depth - 1)
            worth = self._fill(spare, 0, rows[low], depth - 1)
            worth += self._fill(spare, 0, rows[~low], depth - 1)
            tried.append(Question(question.feature, question.edge, question.missing_low, worth))
        return min(tried, key=lambda own: own.worth)

    def first_questions(self, rows: Ints, depth: int) -> list["Question"]:
        """The best question of each feature, best first; `depth` is 1, or 2 for one more behind."""
        tables = _Tables(self.cuts, self.columns[rows], rows, self.least)
        features = [number for number, edges in enumerate(self.cuts.edges) if len(edges)]
        questions = [own for feature in features for own in tables.best(feature, depth)]
        return sorted(questions, key=lambda own: own.worth)


@dataclass(frozen=True)
class Question:
    """Whether a feature is at most its edge.

    Args:
        feature: Which.
        edge: Number of the edge.
        missing_low: Whether rows without a value are taken to be.
        worth: Summed score of the best tree that starts so.
    """

    feature: int
    edge: int
    missing_low: bool
    worth: float


class _Heap:
    """A tree while it is written."""

    def __init__(self, places: int) -> None:
        self.column = np.full(places, NONE)
        self.cut = np.zeros(places)
        self.missing_low = np.zeros(places, bool)
        self.action = np.full(places, NONE)

    def ask(self, place: int, cuts: Cuts, question: Question) -> None:
        self.column[place] = question.feature
        self.cut[place] = cuts.edges[question.feature][question.edge]
        self.missing_low[place] = question.missing_low
        self.action[place] = NONE

    def tree(self) -> RuleTree:
        tree = RuleTree(self.column, self.cut, self.missing_low, self.action)
        places = 2 ** (tree.depth + 1) - 1
        return RuleTree(
            self.column[:places],
            self.cut[:places],
            self.missing_low[:places],
            self.action[:places],
        )


class _Tables:
    """Sums of scores by class, for one feature and for two.

    Args:
        cuts: The features.
        columns: Scores of the rows and their people last, shape (n, q).
        rows: Which of the features' rows they are.
        least: People that a leaf must stand for.
    """

    def __init__(self, cuts: Cuts, columns: Floats, rows: Ints, least: float) -> None:
        self.cuts, self.columns, self.least = cuts, columns, least
        self.code = cuts.code[:, rows]
        self.width = columns.shape[1]
        self.flat = np.ascontiguousarray(columns).ravel()
        self.offset = np.arange(self.width)
        self.total = columns.sum(axis=0)
        self.pairs: dict[tuple[int, int], Floats] = {}  # needed once more, the other way round

    def best(self, feature: int, depth: int) -> list[Question]:
        """The best question about a feature, for rows without a value on either side."""
        sides = (False, True) if self.cuts.gaps[feature] else (False,)
        worth = self._one(feature, sides) if depth == 1 else self._two(feature, sides)
        questions = []
        for side, own in zip(sides, worth, strict=True):
            edge = int(own.argmin())
            if own[edge] < _WORST:
                questions.append(Question(feature, edge, side, float(own[edge])))
        return questions

    def _one(self, feature: int, sides: Sequence[bool]) -> list[Floats]:
        """Summed score of the best two actions by edge."""
        table = self._sums(self.code[feature], self.cuts.n_classes(feature))
        return [
            self._leaf(low) + self._leaf(self.total - low)
            for low in (_below(table, side) for side in sides)
        ]

    def _two(self, feature: int, sides: Sequence[bool]) -> list[Floats]:
        """Summed score of the best trees with one question more on either side, by edge."""
        alone = self._sums(self.code[feature], self.cuts.n_classes(feature))
        lows = [_below(alone, side) for side in sides]
        best = [[self._leaf(low), self._leaf(self.total - low)] for low in lows]
        for other in range(len(self.cuts.edges)):
            if not len(self.cuts.edges[other]):
                continue
            table = self._pair(feature, other)
            gaps = (False, True) if self.cuts.gaps[other] else (False,)
            for low, pair, side in zip(lows, best, sides, strict=True):
                within = _below(table, side)  # (edges, n, q)
                for gap in gaps:
                    yes = _below(within.transpose(1, 0, 2), gap)  # (other edges, edges, q)
                    every = _below(table.sum(axis=0), gap)[:, None]
                    for number, (part, whole) in enumerate(
                        ((yes, low), (every - yes, self.total - low))
                    ):
                        split = (self._leaf(part) + self._leaf(whole - part)).min(axis=0)
                        np.minimum(pair[number], split, out=pair[number])
        return [pair[0] + pair[1] for pair in best]

    def _pair(self, feature: int, other: int) -> Floats:
        """Columns summed by the classes of two features, shape (classes, classes, q)."""
        if (other, feature) in self.pairs:
            return self.pairs.pop((other, feature)).transpose(1, 0, 2)
        own, n = self.cuts.n_classes(feature), self.cuts.n_classes(other)
        table = self._sums(self.code[feature] * n + self.code[other], own * n)
        table = table.reshape(own, n, self.width)
        if other > feature:
            self.pairs[feature, other] = table
        return table

    def _sums(self, code: Ints, n: int) -> Floats:
        """Columns summed by class, shape (n, q)."""
        index = (code * self.width)[:, None] + self.offset
        sums = np.bincount(index.ravel(), self.flat, minlength=n * self.width)
        return np.asarray(sums, np.float64).reshape(n, self.width)

    def _leaf(self, sums: Floats) -> Floats:
        """Score of the best action for each of some sums (..., q); hopeless where they are few."""
        best = sums[..., :-1].min(axis=-1)
        return np.where(sums[..., -1] >= self.least, best, _WORST)


def _below(table: Floats, missing_low: bool) -> Floats:
    """Sums at or below each edge, along the first axis, whose last class has no value."""
    below = table[:-2].cumsum(axis=0)
    return below + table[-1] if missing_low else below


def _edges(known: Floats, bins: int) -> Floats:
    """Where a feature is cut: between values that occur, at numbers that are easily said."""
    distinct = np.unique(known)
    if distinct.size < 2:
        return np.zeros(0)
    if distinct.size > bins:
        levels = np.quantile(known, np.arange(1, bins) / bins, method="lower")
        lows = np.unique(levels)
        lows = lows[lows < distinct[-1]]
    else:
        lows = distinct[:-1]
    highs = distinct[np.searchsorted(distinct, lows, side="right")]
    return np.unique([round_between(low, high) for low, high in zip(lows, highs, strict=True)])


def round_between(low: float, high: float) -> float:
    """The number with the fewest digits from `low` to just below `high`, near their middle."""
    middle = low + (high - low) / 2
    for digits in range(1, 16):
        number = float(f"{middle:.{digits}g}")
        if low <= number < high:
            return number
    return low
