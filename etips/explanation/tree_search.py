"""The tree of least summed score: exact for two questions in a row, with look-ahead beyond.

Every feature is cut into bins once. The scores of all trees of two questions then follow from the
table of two features' bins, one such table a pair of features. Of deeper trees the first questions
that are best two questions deep are tried, each with the best trees below. NumPy alone.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from etips.data.coded import Floats32
from etips.data.decisions import Floats, Ints
from etips.policies.rule_tree import NONE, RuleTree

BINS = 16
"""Classes of a feature, at most: a tree may cut between any two of them."""

_TRIED = {3: 3, 4: 2}  # first questions that are tried, by how many may follow one another
_HOPELESS = 1e300


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
        codes, edges = [], []
        for column in rows.T:
            known = column[~np.isnan(column)].astype(np.float64)
            own = _edges(known, bins)
            code = np.searchsorted(own, column, side="left")  # at most the edge: the class below
            codes.append(np.where(np.isnan(column), len(own) + 1, code))
            edges.append(own)
        stacked = np.array(codes, np.int64).reshape(len(codes), len(rows))
        gaps = tuple(bool(np.isnan(column).any()) for column in rows.T)
        return cls(stacked, tuple(edges), gaps)

    def n_classes(self, feature: int) -> int:
        """Classes of a feature, that of rows without a value included."""
        return len(self.edges[feature]) + 2


class Question(NamedTuple):
    """Whether a feature is at most the edge of that number.

    `missing_low` says whether rows without a value are taken to be, `worth` is the summed score of
    the best tree that starts so.
    """

    feature: int
    edge: int
    missing_low: bool
    worth: float


class _Tree(NamedTuple):
    """A tree with its summed score: a question and what follows yes and no, or an action."""

    worth: float
    question: Question | None = None
    below: "tuple[_Tree, ...]" = ()
    action: int = NONE


@dataclass(frozen=True, eq=False)
class Search:
    """What a search needs.

    Args:
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
        level = [self._best(np.arange(len(self.scores)), depth)]
        places: list[_Tree] = []
        while any(own.question or own.action != NONE for own in level):
            places += level
            level = [tree for own in level for tree in own.below or (_Tree(0.0), _Tree(0.0))]
        asked = [own.question for own in places]
        return RuleTree(
            np.array([NONE if own is None else own.feature for own in asked]),
            np.array([0.0 if o is None else self.cuts.edges[o.feature][o.edge] for o in asked]),
            np.array([own is not None and own.missing_low for own in asked]),
            np.array([own.action for own in places]),
        )

    def _best(self, rows: Ints, depth: int) -> _Tree:
        """The best tree for some rows."""
        alone = self.scores[rows].sum(axis=0)
        best = _Tree(float(alone.min()), action=int(alone.argmin()))
        if depth == 0:
            return best
        bar = best.worth - 1e-9 * abs(best.worth)
        for question in self.first_questions(rows, min(depth, 2))[: _TRIED.get(depth, 1)]:
            if depth <= 2 and not question.worth < bar:
                break
            low = self.is_low(rows, question)
            below = self._best(rows[low], depth - 1), self._best(rows[~low], depth - 1)
            worth = below[0].worth + below[1].worth
            if worth < min(best.worth, bar):
                best = _Tree(worth, question, below)
        return best

    def is_low(self, rows: Ints, question: Question) -> NDArray[np.bool_]:
        """Which rows answer a question with yes."""
        code = self.cuts.code[question.feature, rows]
        gap = code == self.cuts.n_classes(question.feature) - 1
        return np.where(gap, question.missing_low, code <= question.edge)

    def first_questions(self, rows: Ints, depth: int) -> list[Question]:
        """The best question of each feature, best first; `depth` is 1, or 2 for one more behind."""
        tables = _Tables(self.cuts, self.columns[rows], rows, self.least)
        questions = [own for feature in tables.features for own in tables.best(feature, depth)]
        return sorted(questions, key=lambda own: own.worth)


class _Tables:
    """Sums of columns (n, q), scores and people last, by the classes of one feature and of two."""

    def __init__(self, cuts: Cuts, columns: Floats, rows: Ints, least: float) -> None:
        self.cuts, self.columns, self.least = cuts, columns, least
        self.features = [number for number, edges in enumerate(cuts.edges) if len(edges)]
        self.code = cuts.code[:, rows]
        self.total = columns.sum(axis=0)
        self.pairs: dict[tuple[int, int], Floats] = {}  # needed once more, the other way round

    def best(self, feature: int, depth: int) -> list[Question]:
        """The best question about a feature, for rows without a value on either side."""
        table = self._sums(self.code[feature], self.cuts.n_classes(feature))
        questions = []
        for side in self._sides(feature):
            low = _below(table, side)
            pair = [self._leaf(low), self._leaf(self.total - low)]
            for other in self.features if depth == 2 else ():
                self._ask_more(pair, low, self._pair(feature, other), side, other)
            worth = pair[0] + pair[1]
            edge = int(worth.argmin())
            if worth[edge] < _HOPELESS:
                questions.append(Question(feature, edge, side, float(worth[edge])))
        self.pairs = {key: own for key, own in self.pairs.items() if key[1] != feature}
        return questions

    def _sides(self, feature: int) -> tuple[bool, ...]:
        return (False, True) if self.cuts.gaps[feature] else (False,)

    def _ask_more(
        self, pair: list[Floats], low: Floats, table: Floats, side: bool, other: int
    ) -> None:
        """Lower the score on either side of each edge to that with one question more there."""
        within = _below(table, side)  # (edges, n, q)
        for gap in self._sides(other):
            yes = _below(within.transpose(1, 0, 2), gap)  # (other edges, edges, q)
            every = _below(table.sum(axis=0), gap)[:, None]
            for number, (part, whole) in enumerate(((yes, low), (every - yes, self.total - low))):
                split = (self._leaf(part) + self._leaf(whole - part)).min(axis=0)
                np.minimum(pair[number], split, out=pair[number])

    def _pair(self, feature: int, other: int) -> Floats:
        """Columns summed by the classes of two features, shape (classes, classes, q)."""
        if (other, feature) in self.pairs:
            return self.pairs[other, feature].transpose(1, 0, 2)
        if (feature, other) in self.pairs:
            return self.pairs[feature, other]
        own, n = self.cuts.n_classes(feature), self.cuts.n_classes(other)
        table = self._sums(self.code[feature] * n + self.code[other], own * n)
        table = table.reshape(own, n, -1)
        self.pairs[feature, other] = table
        return table

    def _sums(self, code: Ints, n: int) -> Floats:
        """Columns summed by class, shape (n, q)."""
        width = self.columns.shape[1]
        index = (code * width)[:, None] + np.arange(width)
        sums = np.bincount(index.ravel(), self.columns.ravel(), minlength=n * width)
        return np.asarray(sums, np.float64).reshape(n, width)

    def _leaf(self, sums: Floats) -> Floats:
        """Score of the best action for each of some sums (..., q); hopeless where they are few."""
        return np.where(sums[..., -1] >= self.least, sums[..., :-1].min(axis=-1), _HOPELESS)


def _below(table: Floats, missing_low: bool) -> Floats:
    """Sums at or below each edge, along the first axis, whose last class has no value."""
    below = table[:-2].cumsum(axis=0)
    return below + table[-1] if missing_low else below


def _edges(known: Floats, bins: int) -> Floats:
    """Where a feature is cut: between values that occur, at numbers that are easily said."""
    distinct = np.unique(known)
    if distinct.size < 2:
        return np.zeros(0)
    lows = distinct[:-1]
    if distinct.size > bins:
        levels = np.quantile(known, np.arange(1, bins) / bins, method="lower")
        lows = np.unique(levels)
        lows = lows[lows < distinct[-1]]
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
