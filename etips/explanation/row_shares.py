"""Shapley values of any model of rows, by sampling orders of its columns.

Columns are exchanged one after another from the reference row to the patient's; what each changes
is its share in that order. Shares of an order add up to the whole difference, so their mean does.
Every order is also walked backwards, which halves the noise.
"""

from collections.abc import Callable

import numpy as np

from etips.data.decisions import Floats

_ORDERS = 16

Say = Callable[[Floats], Floats]
"""A number for each of some rows."""


def row_shares(say: Say, row: Floats, reference: Floats, *, seed: int = 0) -> Floats:
    """What each column adds between two rows, shape (d,).

    Args:
        say: What is explained.
        row: The patient's, shape (d,).
        reference: Whom they are compared with.
        seed: Of the orders.
    """
    same = (row == reference) | (np.isnan(row) & np.isnan(reference))
    differ = np.flatnonzero(~same)
    shares = np.zeros(len(row))
    if not differ.size:
        return shares
    generator = np.random.default_rng(seed)
    drawn = [generator.permutation(differ) for _ in range(_ORDERS // 2)]
    orders = np.array([order for own in drawn for order in (own, own[::-1])])  # (orders, n)
    n_orders, n = orders.shape
    columns = np.sort(differ)
    rank = np.argsort(np.searchsorted(columns, orders), axis=1)  # place of each column in an order
    taken = rank[:, None, :] < np.arange(n + 1)[:, None]  # (orders, steps, n)
    rows = np.repeat(reference[None], n_orders * (n + 1), axis=0)
    rows[:, columns] = np.where(
        taken.reshape(-1, n), row[columns], np.broadcast_to(reference[columns], (1, n))
    )
    said = say(rows).reshape(n_orders, n + 1)
    change = np.diff(said, axis=1)  # by place in the order
    shares[columns] = np.take_along_axis(change, rank, axis=1).mean(axis=0)
    return shares
