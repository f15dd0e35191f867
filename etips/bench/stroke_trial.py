"""The International Stroke Trial as it is published: what was known at entry, arm, outcome, odds.

The data may not be shipped; whoever has downloaded IST.csv (or .csv.gz) names the file.
"""

import csv
import gzip
import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from etips.data.decisions import Floats
from etips.data.tables.arrays import from_arrays
from etips.data.trajectories import Trajectories
from etips.errors import FileError

NUMBERS = ("AGE", "RSBP", "RDELAY")
LEVELS = {
    "SEX": ("M",),
    "RCONSC": ("D", "U"),
    "STYPE": ("TACS", "LACS", "POCS", "OTH"),
    **dict.fromkeys(("RSLEEP", "RATRIAL", "RCT", "RVISINF", "RHEP24", "RASP3"), ("Y",)),
    **{f"RDEF{k}": ("Y",) for k in range(1, 9)},
}
"""Features at entry: numbers, and the levels that get a column each."""

HEPARIN = {"N": 0, "L": 1, "M": 2, "H": 2}
"""Arms of heparin; the pilot called medium high."""

DEAD_OR_DEPENDENT = ("1", "2")
"""Of the outcome at six months."""

_ARM, _OUTCOME = ("RXASP", "RXHEP"), "OCCODE"


def read_trial(path: Path) -> tuple[Trajectories, str]:
    """The trial, one decision a patient with its known odds; and the hash of the file.

    Args:
        path: IST.csv as published, or the same packed by gzip.
    """
    try:
        content = path.read_bytes()
        packed = content[:2] == b"\x1f\x8b"
        text = (gzip.decompress(content) if packed else content).decode("latin-1")
    except (OSError, EOFError) as error:
        raise FileError(str(path), "cannot be read", fix="--trial names IST.csv.") from error
    rows = list(csv.DictReader(io.StringIO(text)))
    names = set(rows[0]) if rows else set()
    lacking = [name for name in (*NUMBERS, *LEVELS, *_ARM, _OUTCOME) if name not in names]
    if lacking:
        rule = f"must have the columns of the stroke trial; {', '.join(lacking[:3])} is not there"
        raise FileError(str(path), rule, fix="--trial names IST.csv as published.")
    try:
        arm = np.array([3 * (row["RXASP"] == "Y") + HEPARIN[row["RXHEP"]] for row in rows])
        features = _features(rows)
    except (KeyError, ValueError):
        rule = "holds a treatment or a number that the published trial does not have"
        raise FileError(str(path), rule, fix="--trial names IST.csv as published.") from None
    loss = np.array([row[_OUTCOME] in DEAD_OR_DEPENDENT for row in rows], np.float64)
    odds = np.where(arm % 3 == 0, 1 / 4, 1 / 8)
    stays = from_arrays(features, arm, loss, propensity=odds, n_actions=6)
    return stays, hashlib.sha256(content).hexdigest()


def _features(rows: Sequence[dict[str, str]]) -> Floats:
    numbers = [[float(row[name]) for name in NUMBERS] for row in rows]
    levels = [
        [float(row[name].strip() == level) for name, own in LEVELS.items() for level in own]
        for row in rows
    ]
    return np.concatenate([np.array(numbers), np.array(levels)], axis=1)
