"""Gradient-boosted trees, grown by scikit-learn and kept as arrays of ours.

scikit-learn is imported when trees are grown (`tree_grower`), and nowhere else: a policy that holds
trees needs NumPy alone. It grows trees about three times as fast as `evaluation.boosted_trees`, at
the same held-out error. One thread grows them, so that sums do not depend on how many there are.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from importlib.util import find_spec
from typing import Any, Self

import numpy as np

from etips.data.decisions import Bools, Floats, Ints
from etips.data.history_rows import last_step
from etips.data.trajectories import Trajectories
from etips.errors import SettingError, require_number, require_seed, require_whole
from etips.learn.nuisance.tree_grower import Kind, Orders, Rounds, grow
from etips.models.forest import EVERY, LEAVES, Tree, plant

MOST_TREES = 1200
"""Trees of a member, at most: with many actions a round grows one for each."""

CLASSES: Kind = "HistGradientBoostingClassifier"
AMOUNTS: Kind = "HistGradientBoostingRegressor"

_HELD = 8  # one row in so many stops the trees of a model that is fitted by itself


def can_grow_trees() -> bool:
    """Whether scikit-learn is here."""
    try:
        return find_spec("sklearn") is not None
    except ValueError:  # what a test has put in its place
        return False


@dataclass(frozen=True, eq=False)
class Grown:
    """What one member learned beyond its base.

    Args:
        trees: In the order in which they are added up.
        output: Place of each tree among the outputs, or `EVERY`.
        base: What to add to the member's base, a number.
    """

    trees: Sequence[Tree]
    output: Sequence[int]
    base: float = 0.0


@dataclass(eq=False)
class BoostedTrees:
    """How trees are grown; also a propensity model of its own, on the last visible step.

    Args:
        rounds: Most rounds; they end once held-out rows are the worse for more.
        learning_rate: Share of each tree that is added.
        least_rows: Rows that a leaf must hold.
        ridge: Curvature that each leaf is averaged with. Without it the first leaves that hold a
            rare action leap far beyond what held-out rows bear, and no more are grown.
        patience: Rounds without a better held-out loss after which no more are grown.
        seed: Of what is drawn.
    """

    _: KW_ONLY
    rounds: int = 200
    learning_rate: float = 0.1
    least_rows: int = 20
    ridge: float = 5.0
    patience: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rounds", "least_rows", "patience"):
            require_whole(name, getattr(self, name), least=1)
        require_number("learning_rate", self.learning_rate)
        if not 0 < self.learning_rate <= 1:
            raise SettingError("learning_rate", "must be in (0, 1]")
        require_number("ridge", self.ridge)
        if not 0 <= self.ridge < np.inf:
            raise SettingError("ridge", "must be finite and not negative")
        require_seed(self.seed)

    def grow_classes(self, rows: Floats, action: Ints, learns: Bools, stops: Bools) -> Grown:
        """Trees that tell actions from one another: softmax outputs beyond their frequencies.

        Args:
            rows: Shape (n, d).
            action: Shape (n,).
            learns: Whom to learn from, shape (n,).
            stops: Who says when to stop, shape (n,).
        """
        orders = self.order_classes(rows, action, learns[None], stops[None])
        return read_classes(grow(orders, 0), action, learns)

    def order_classes(self, rows: Floats, action: Ints, learns: Bools, stops: Bools) -> Orders:
        """What `grow_classes` grows, of J members: `learns` and `stops` have shape (J, n)."""
        rounds = []
        told = np.zeros_like(stops)
        for member, own in enumerate(learns):
            known = np.unique(action[own])
            grows = known.size > 1 and rows.shape[1]
            most = min(self.rounds, max(MOST_TREES // max(known.size, 1), 20))
            rounds.append(most if grows else 0)
            told[member] = stops[member] & np.isin(action, known)
        target = np.broadcast_to(action, learns.shape)
        return Orders(CLASSES, self._settings(), rounds, rows, target, learns, told)

    def grow_amounts(
        self,
        rows: Floats,
        action: Ints,
        n_actions: int,
        target: Floats,
        learns: Bools,
        stops: Bools,
    ) -> Grown:
        """Trees that predict a number from the rows and the action taken.

        A tree that asks for no action is added to all outputs alike, so that rare actions are taken
        to be like the others until the log says otherwise.

        Args:
            rows: Shape (n, d).
            action: Shape (n,).
            n_actions: K.
            target: What is predicted for the action taken, shape (n,).
            learns: Whom to learn from, shape (n,).
            stops: Who says when to stop, shape (n,).
        """
        orders = self.order_amounts(
            rows, action, n_actions, target[None], learns[None], stops[None]
        )
        return read_amounts(grow(orders, 0), rows.shape[1], n_actions)

    def order_amounts(
        self,
        rows: Floats,
        action: Ints,
        n_actions: int,
        target: Floats,
        learns: Bools,
        stops: Bools,
    ) -> Orders:
        """What `grow_amounts` grows, of J members: the last three have shape (J, n)."""
        beside = np.concatenate([rows, np.eye(n_actions)[action]], axis=1)
        rounds = [self.rounds if own.any() and rows.shape[1] else 0 for own in learns]
        return Orders(AMOUNTS, self._settings(), rounds, beside, target, learns, stops)

    def fit(self, data: Trajectories) -> Self:
        """Fit to the logged actions of stays."""
        rows, action = last_step(data).astype(np.float64), data.logged_action
        drawn = np.random.default_rng(self.seed).permutation(int(data.units.max()) + 1) % _HELD
        stops = (drawn == 0)[data.units][data.decisions().stay]
        grown = self.grow_classes(rows, action, ~stops, stops)
        count = np.bincount(action, minlength=data.n_actions) + 1 / data.n_actions
        base = np.log(count / count.sum())[None]
        self.forest_ = plant(grown.trees, [0] * len(grown.trees), grown.output, base)
        return self

    def predict_proba(self, data: Trajectories) -> Floats:
        """Probability of every action, shape (n_decisions, n_actions), in decision order."""
        if "forest_" not in vars(self):
            raise SettingError("BoostedTrees", "must be fitted first")
        outputs = self.forest_.outputs(last_step(data))[0]
        likely = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return np.asarray(likely / likely.sum(axis=1, keepdims=True))

    def _settings(self) -> dict[str, float]:
        """As scikit-learn calls them."""
        return {
            "learning_rate": self.learning_rate,
            "max_leaf_nodes": LEAVES,
            "min_samples_leaf": self.least_rows,
            "l2_regularization": self.ridge,
            "n_iter_no_change": self.patience,
            "random_state": self.seed,
        }


def read_classes(grown: Rounds, action: Ints, learns: Bools) -> Grown:
    """Trees of `grow_classes` from what a member grew that learned from some (n,)."""
    known = np.unique(action[learns])
    places = known[1:] if known.size == 2 else known  # of two classes one output tells
    trees = grown.trees
    n_rounds = len(trees) // max(len(places), 1)
    return Grown([_tree(nodes) for nodes in trees], [*places] * n_rounds)


def read_amounts(grown: Rounds, n_columns: int, n_actions: int) -> Grown:
    """Trees of `grow_amounts` from what a member grew on rows of so many columns."""
    trees, output = [], []
    for nodes in grown.trees:
        asks = ~nodes["is_leaf"].astype(bool) & (nodes["feature_idx"] >= n_columns)
        for place in range(n_actions) if asks.any() else (EVERY,):
            trees.append(_tree(nodes, taken=(n_columns, place)))
            output.append(place)
    return Grown(trees, output, grown.base)


def _tree(nodes: Any, taken: tuple[int, int] | None = None) -> Tree:  # noqa: ANN401
    """A tree of scikit-learn's as ours.

    Args:
        nodes: Its structured array.
        taken: First column that stands for an action, and the action that is asked about: such
            nodes send everybody the same way.
    """
    column, cut, missing_left, left, right, value = [], [], [], [], [], []

    def leaves_below(place: int) -> int:
        node = nodes[place]
        if node["is_leaf"]:
            value.append(float(node["value"]))
            return 1 << (len(value) - 1)
        below = leaves_below(int(node["left"])), leaves_below(int(node["right"]))
        asked, limit = int(node["feature_idx"]), float(node["num_threshold"])
        gap_left = bool(node["missing_go_to_left"])
        if taken is not None and asked >= taken[0]:
            gap_left = float(asked - taken[0] == taken[1]) <= limit
            asked, limit = 0, np.inf if gap_left else -np.inf
        column.append(asked)
        cut.append(limit)
        missing_left.append(gap_left)
        left.append(below[0])
        right.append(below[1])
        return below[0] | below[1]

    leaves_below(0)
    return Tree(column, cut, missing_left, left, right, value)
