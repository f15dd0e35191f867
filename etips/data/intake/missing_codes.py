"""Codes such as 99 or -9 that may stand for a missing value: asked about, never changed."""

import numpy as np

from etips.data.coded import Floats32
from etips.data.decisions import Bools
from etips.data.trajectories import Trajectories
from etips.disclosure import LEAST_PEOPLE
from etips.errors import as_option
from etips.notes import note

CODES = (-9, -99, -999, -9999, -99999, 99, 999, 9999, 99999)
"""What registries write for a value that nobody has."""

UNKNOWN = ("unknown", "unk", "not known", "not recorded", "missing", "unbekannt", "inconnu")
"""Labels of a treatment, in small letters, that mean the same."""

_CHUNK = 4096  # rows looked at together: they lie side by side, columns do not


def ask_missing_codes(data: Trajectories) -> None:
    """Ask about columns and actions in which a well-known code stands apart from all the rest."""
    schema = data.schema
    kinds = {} if schema.recipe is None else schema.recipe.kinds
    for names, values in ((schema.sequence, data.sequence), (schema.static, data.static)):
        if not isinstance(values, np.ndarray):
            continue
        suspect = _end_in_codes(values)
        for at, name in enumerate(names):
            if suspect[at] and name in kinds and kinds[name].kind == "number":
                code = _code_apart(values[:, at])
                if code is not None:
                    found = f"column {name} holds {code} and nothing near it"
                    _ask(found, "a missing value", f"{name}={code}")
    for label in schema.actions:
        if _means_unknown(label, schema.actions):
            column = (
                ()
                if schema.recipe is None or schema.recipe.action is None
                else (schema.recipe.action.columns)
            )
            mark = f"{column[0]}={label}" if len(column) == 1 else label
            _ask(f"{label} is read as an action", "an unknown one", mark)


def _ask(found: str, what: str, mark: str) -> None:
    note(f"{found}: does it stand for {what}? Then say --na {as_option(mark)}")


def _end_in_codes(values: Floats32) -> Bools:
    """Whether the least or the largest value of each column is a code, shape (d,)."""
    least = np.full(values.shape[1], np.nan, np.float32)
    most = least.copy()
    for start in range(0, len(values), _CHUNK):
        part = values[start : start + _CHUNK]
        least = np.fmin(least, np.fmin.reduce(part, axis=0))
        most = np.fmax(most, np.fmax.reduce(part, axis=0))
    return np.isin(least, CODES) | np.isin(most, CODES)


def _code_apart(values: Floats32) -> int | None:
    """A code at an end of the values, as far from the others as they are from one another."""
    known = values[~np.isnan(values)]
    for end in (known.max(), known.min()) if known.size else ():
        if end not in CODES:
            continue
        rest = known[known != end]
        if rest.size < LEAST_PEOPLE or known.size - rest.size < LEAST_PEOPLE:
            continue
        if np.abs(rest - end).min() > max(float(np.ptp(rest)), 1.0):
            return int(end)
    return None


def _means_unknown(label: str, labels: tuple[str, ...]) -> bool:
    """Whether a label says that nobody knows, or is a code far from the other codes."""
    if label.strip().lower() in UNKNOWN:
        return True
    try:
        numbers = np.array([float(own) for own in labels])
    except ValueError:
        return False
    own = float(label)
    rest = numbers[numbers != own]
    return own in CODES and bool(rest.size and np.abs(rest).max() < abs(own) / 2)
