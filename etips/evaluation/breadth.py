"""How many different things a table of features tells."""

import numpy as np

from etips.evaluation.inference.checks import Rows

MOST_ROWS = 5_000


def breadth(features: Rows) -> float:
    """Columns that vary, those that say the same counted once.

    Their number squared over the sum of all squared correlations, known as participation ratio.

    Args:
        features: One row a decision, NaN where missing, shape (n, d).
    """
    table = np.asarray(features[:: -(-len(features) // MOST_ROWS)], np.float64)
    known = np.isfinite(table)
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, table, 0.0).sum(axis=0) / count
    centred = np.where(known, table - centre, 0.0)
    size = np.sqrt((centred**2).sum(axis=0))
    varies = size > 1e-9 * (1 + np.abs(centre)) * np.sqrt(len(table))
    if not varies.any():
        return 0.0
    unit = centred[:, varies] / size[varies]
    return float(varies.sum() ** 2 / ((unit.T @ unit) ** 2).sum())
