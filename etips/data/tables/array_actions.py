"""Actions that an array gives as text, numbered by alphabet."""

import numpy as np
from numpy.typing import ArrayLike

from etips.data.decisions import Floats
from etips.errors import DataError, SettingError, require

MOST_LABELS = 200
"""As in a table: more are an identifier or free text."""


def number_labels(
    action: ArrayLike | None, n_actions: int | None
) -> tuple[ArrayLike | None, tuple[str, ...]]:
    """Actions as numbers, and their names if they were text; anything else is left as it is.

    Args:
        action: As the caller gave them. Of text, None, NaN and blank are no action.
        n_actions: K, which must be that of the labels if there are any.
    """
    cells = None if action is None else np.asarray(action)
    if cells is None or cells.dtype.kind not in "OU" or not _has_words(cells):
        return action, ()
    flat = cells.ravel().tolist()
    known = np.array([isinstance(cell, str) or _is_missing(cell) for cell in flat])
    require("action", "must be text or numbers, not both", known)
    labels = [" ".join(cell.split()) if isinstance(cell, str) else "" for cell in flat]
    names = tuple(sorted({label for label in labels if label}))
    if len(names) > MOST_LABELS:
        raise DataError("action", f"must hold at most {MOST_LABELS} different labels")
    if n_actions is not None and n_actions != len(names):
        rule = f"must be the number of labels, which is {len(names)} here"
        raise SettingError("n_actions", rule, fix="Leave it out.")
    place = {name: float(number) for number, name in enumerate(names)}
    numbers: Floats = np.array([place.get(label, np.nan) for label in labels])
    return numbers.reshape(cells.shape), names


def _has_words(cells: np.ndarray) -> bool:
    """Whether some cell is text that spells no number."""
    try:
        np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError):
        return any(isinstance(cell, str) for cell in cells.ravel().tolist())
    return False


def _is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, float) and np.isnan(cell))
