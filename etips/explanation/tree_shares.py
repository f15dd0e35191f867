"""Shapley values of boosted trees against one reference row: exact, in a closed form.

A leaf is reached by the row whose features in some set are the patient's and whose others are the
reference's. Let X be the features on the way to the leaf where only the patient's value follows the
way, Z those where only the reference's does, and let no node turn both away. The leaf then counts
if all of X and none of Z is in the set, and that game has the Shapley values below.
"""

from math import factorial

import numpy as np
from numpy.typing import NDArray

from etips.data.decisions import Bools, Floats
from etips.models.forest import EVERY, LEAVES, Forest

_NODES = LEAVES - 1
_FOR = np.array(
    [
        [0 if x == 0 else factorial(x - 1) * factorial(z) / factorial(x + z) for z in range(LEAVES)]
        for x in range(LEAVES)
    ]
)
"""Share of each feature of X, by the sizes of X and Z; that of Z is minus the transposed one."""


def tree_shares(forest: Forest, row: Floats, reference: Floats, lean: Floats) -> Floats:
    """What each column adds to `lean @ outputs`, mean over the members, shape (d,).

    They add up to the difference between row and reference.

    Args:
        forest: The trees.
        row: The patient's features, NaN where missing, shape (d,).
        reference: The same of whom they are compared with.
        lean: How much each output counts, shape (K,).
    """
    if not forest.n_trees:
        return np.zeros(len(row))
    counts = np.where(forest.output == EVERY, lean.sum(), lean[forest.output])
    bits = 1 << np.arange(LEAVES)
    is_left = (forest.left[:, None, :] & bits[:, None].astype(np.uint8)) > 0  # (T, leaf, node)
    is_right = (forest.right[:, None, :] & bits[:, None].astype(np.uint8)) > 0
    on_way = is_left | is_right
    own, other = (_goes_left(forest, values)[:, None, :] for values in (row, reference))
    own_follows, other_follows = (np.where(is_left, side, ~side) for side in (own, other))
    blocked = (on_way & ~own_follows & ~other_follows).any(axis=2)
    only_own, only_other = on_way & own_follows & ~other_follows, on_way & other_follows
    only_other &= ~own_follows
    same = forest.column[:, None, :, None] == forest.column[:, None, None, :]
    earlier = np.tri(_NODES, k=-1, dtype=bool)
    in_x, in_z = _first_of(only_own, same, earlier), _first_of(only_other, same, earlier)
    # A feature cannot be the patient's and the reference's at once.
    blocked |= (only_own[..., None] & only_other[..., None, :] & same).any(axis=(2, 3))
    n_x, n_z = in_x.sum(axis=2), in_z.sum(axis=2)
    worth = np.where(blocked, 0.0, forest.value * counts[:, None])  # (T, leaf)
    shares = in_x * (worth * _FOR[n_x, n_z])[..., None] - in_z * (worth * _FOR[n_z, n_x])[..., None]
    by_node = shares.sum(axis=1)
    total = np.bincount(forest.column.ravel(), by_node.ravel(), minlength=len(row))
    return np.asarray(total / forest.n_members)


def _goes_left(forest: Forest, row: Floats) -> Bools:
    """Whether a row goes left at each node, shape (T, nodes)."""
    values = row[forest.column]
    known: NDArray[np.bool_] = ~np.isnan(values)
    return np.where(known, values <= forest.cut, forest.missing_left > 0)


def _first_of(chosen: Bools, same: Bools, earlier: Bools) -> Bools:
    """Those nodes that are the first of their column among the chosen ones."""
    before = (chosen[:, :, None, :] & same & earlier).any(axis=3)
    return chosen & ~before
