"""Tables of one row a patient: a trial without effect, and wards whose answer is known."""

from dataclasses import replace

import numpy as np

from etips.data.tables.arrays import from_arrays


def trial(n=600, n_actions=3, seed=0):
    """Actions drawn alike for everybody; age and a flag go with the loss, no action does."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.normal(size=(n, 3)), rng.random(n) < 0.4])
    action = rng.integers(0, n_actions, n)
    loss = (rng.random(n) < 0.2 + 0.5 * (rows[:, 0] > 0)).astype(float)
    return from_arrays(rows, action, loss)


def thresholds(n=1500, seed=0):
    """Clinicians go by a corner of two features, and so does what helps; noise beside them."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 4))
    corner = (rows[:, 0] > 0.2) & (rows[:, 1] < 0.1)
    chance = np.where(corner, 0.75, 0.25)
    action = (rng.random(n) < chance).astype(np.int64)
    risk = np.where(corner == action, 0.1, 0.8)
    return from_arrays(rows, action, (rng.random(n) < risk).astype(float)), rows, corner


def with_gaps(rows, seed=0, share=0.2):
    """The same rows, some values missing."""
    return np.where(np.random.default_rng(seed).random(rows.shape) < share, np.nan, rows)


def gappy(data, share=0.2):
    """The same stays, some values missing."""
    names = (*data.schema.sequence, *data.schema.static)
    return replace(
        data,
        schema=replace(data.schema, indicators=names),
        sequence=with_gaps(data.sequence[:], share=share).astype(np.float32),
        static=with_gaps(data.static, seed=1, share=share).astype(np.float32),
    )
