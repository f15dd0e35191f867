"""Whom a policy learned from, as salted hashes: enough to tell whether it is judged on them.

Names of stays and patients are hashed, and what stays hold. A stay is known by its name, unless
names are mere numbers: those count only where what the stay began with agrees. It is also known by
its content (features and actions, not the loss, which can be defined anew), whatever it is called;
where different stays often hold the same, only if more of them agree than by chance.

The salt is kept with the policy and comes from its networks and its log: no two policies share one,
so that theirs cannot be compared, yet the same fit gives the same bytes. Whoever has a policy and
somebody's name or record can still ask whether they are among those it learned from.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from etips.data.coded import Coded, Features, Floats32
from etips.data.trajectories import Trajectories

Hashes = NDArray[np.uint64]

SALT_BYTES = 16
NUMBERED = 20
"""Whole names below this many times their number may be the rows of some table."""

A_FEW = 5
"""Stays that may hold the same by chance though no two of one log do, unless values are fine."""

DISTINCT = 0.9
"""Share of stays whose value of some feature is all their own, in data whose values tell apart."""

BEYOND_CHANCE = 6.0
"""Standard errors by which stays must agree more often than different ones do."""

_ARRAYS = ("names", "beginnings", "contents", "patients")
_BLOCK = 2**12  # rows coded at a time


class Overlap(NamedTuple):
    """How many of some stays a policy learned from.

    Args:
        n_stays: Stays that it knows.
        n_patients: Patients that it knows, where both name them.
        alike: Whether stays hold the same so often that only names could tell them apart.
    """

    n_stays: int
    n_patients: int
    alike: bool


class _Traces(NamedTuple):
    """Hashes of some stays, one each; of patients one each."""

    names: Hashes
    beginnings: Hashes
    contents: Hashes
    patients: Hashes
    starts: Hashes  # beginnings without the name: how often those of different stays agree


@dataclass(frozen=True, eq=False)
class SeenStays:
    """Hashes of the stays and patients that a policy learned from, each array sorted.

    Args:
        salt: Key of the hashes.
        names: Of the stays.
        beginnings: Of each name with what the stay began with.
        contents: Of what the stays hold; those that hold the same are repeated.
        patients: Of the patients, where they are known.
        numbered: Whether the names may be mere numbers.
        patients_numbered: Whether the patients are counted 0, 1, ... without a gap.
    """

    salt: bytes
    names: Hashes
    beginnings: Hashes
    contents: Hashes
    patients: Hashes
    numbered: bool
    patients_numbered: bool

    @classmethod
    def of(cls, stays: Trajectories, *, salt: bytes) -> Self:
        """Those of some stays.

        Args:
            stays: That a policy learned from.
            salt: Of this policy alone; see `make_salt`.
        """
        traces = _trace(stays, salt)
        return cls(
            salt=salt,
            names=np.sort(traces.names),
            beginnings=np.sort(traces.beginnings),
            contents=np.sort(traces.contents),
            patients=np.sort(traces.patients),
            numbered=may_be_numbers(stays.stay),
            patients_numbered=stays.group is not None and are_counted(stays.group),
        )

    def overlap(self, stays: Trajectories) -> Overlap:
        """How many of `stays` are among these."""
        traces, n = _trace(stays, self.salt), stays.n_stays
        by_name = np.isin(traces.names, self.names)
        if by_name.any() and (self.numbered or may_be_numbers(stays.stay)):
            agree = np.isin(traces.beginnings, self.beginnings)[by_name]
            chance = _limit(_equal_pairs(traces.starts), len(agree), n)
            by_name &= agree.mean() > max(chance, 0.5)
        by_content = np.isin(traces.contents, self.contents)
        repeated = max(_repeated(self.contents), _repeated(traces.contents))
        limit = _limit(repeated, n, len(self.contents))
        enough = by_content.mean() > limit and (by_content.sum() > A_FEW or _tell_apart(stays))
        by_content &= enough
        return Overlap(
            n_stays=int((by_name | by_content).sum()),
            n_patients=self._known_patients(traces.patients, stays),
            alike=limit >= 1,
        )

    def arrays(self) -> dict[str, Hashes]:
        """The hashes by name, as a file holds them."""
        return {name: getattr(self, name) for name in _ARRAYS}

    def to_json(self) -> dict[str, object]:
        """All else, as a manifest holds it."""
        return {
            "salt": self.salt.hex(),
            "numbered": self.numbered,
            "patients_numbered": self.patients_numbered,
        }

    @classmethod
    def from_json(cls, document: object, arrays: Mapping[str, Hashes]) -> Self:
        """What `to_json` and `arrays` gave; a ValueError, TypeError or KeyError if it is not."""
        told: Any = document
        salt, flags = bytes.fromhex(told["salt"]), (told["numbered"], told["patients_numbered"])
        sound = all(
            values.dtype == np.uint64 and values.ndim == 1 and (values[:-1] <= values[1:]).all()
            for values in arrays.values()
        )
        alike = {len(arrays[name]) for name in _ARRAYS[:3]}
        if not (sound and set(arrays) == set(_ARRAYS) and len(alike) == 1 and alike != {0}):
            raise ValueError("the hashes are not those of stays")
        if len(salt) != SALT_BYTES or not all(isinstance(flag, bool) for flag in flags):
            raise ValueError("what is said of the hashes is not sound")
        hashes = {name: arrays[name] for name in _ARRAYS}
        return cls(salt, **hashes, numbered=flags[0], patients_numbered=flags[1])

    def _known_patients(self, patients: Hashes, stays: Trajectories) -> int:
        if stays.group is None or self.patients_numbered or are_counted(stays.group):
            return 0
        return int(np.isin(patients, self.patients).sum())


def make_salt(stays: Trajectories, *parts: bytes) -> bytes:
    """The salt of a policy that has these `parts` and learned from `stays`."""
    digest = hashlib.blake2b(digest_size=SALT_BYTES)
    for array in (stays.action, stays.loss, stays.offsets, stays.static):
        digest.update(b"" if array is None or not array.size else np.ascontiguousarray(array).data)
    for part in parts:
        digest.update(part)
    return digest.digest()


def may_be_numbers(names: NDArray[Any]) -> bool:
    """Whether names could be the rows of a table, so that other data may use the same ones."""
    if not np.issubdtype(names.dtype, np.integer):
        return False
    return bool(names.min() >= 0 and names.max() < NUMBERED * names.size)


def are_counted(names: NDArray[Any]) -> bool:
    """Whether names are 0, 1, ... or 1, 2, ... without a gap: numbers, and nobody's name."""
    if not np.issubdtype(names.dtype, np.integer):
        return False
    distinct = np.unique(names)
    return bool(distinct[0] in (0, 1) and distinct[-1] - distinct[0] + 1 == distinct.size)


def _limit(chance: float, n: int, n_known: int) -> float:
    """Share of `n` stays that may agree with `n_known` others by chance, give or take."""
    return chance + BEYOND_CHANCE * float(np.sqrt(chance * (1 - chance) * (1 / n + 1 / n_known)))


def _repeated(hashes: Hashes) -> float:
    """Share of stays that hold what another of them holds: about that of others that would."""
    _, counts = np.unique(hashes, return_counts=True)
    return float(counts[counts > 1].sum() / hashes.size)


def _equal_pairs(hashes: Hashes) -> float:
    """Chance that two of them are alike."""
    _, counts = np.unique(hashes, return_counts=True)
    pairs = hashes.size * max(hashes.size - 1, 1)
    return float((counts * (counts - 1)).sum() / pairs)


def _tell_apart(stays: Trajectories) -> bool:
    """Whether some feature is so fine that hardly two stays begin with the same value of it."""
    rows = np.concatenate([stays.sequence[stays.offsets[:-1]], stays.static], axis=1)
    return any(np.unique(column).size >= DISTINCT * len(rows) for column in rows.T)


def _trace(stays: Trajectories, salt: bytes) -> _Traces:
    space, groups = _name_space(stays), () if stays.group is None else np.unique(stays.group)
    names = _hash((space + _label(name) for name in stays.stay.tolist()), salt, b"stay")
    codes = _code_steps(stays, salt)
    starts = codes[stays.offsets[:-1]]
    bytes_of, bounds = memoryview(codes.tobytes()), (8 * stays.offsets).tolist()
    held = (bytes_of[start:stop] for start, stop in pairwise(bounds))
    return _Traces(
        names=names,
        beginnings=names + starts,  # both are as good as random
        contents=_hash(held, salt, b"content"),
        patients=_hash((space + _label(name) for name in groups), salt, b"patient"),
        starts=starts,
    )


def _code_steps(stays: Trajectories, salt: bytes) -> Hashes:
    """A number for each step: of its features and action, and of the static ones at the first."""
    codes = _code_rows(stays.sequence, salt + b"step")
    if stays.action is not None:
        factor = _hash([b""], salt, b"action") | np.uint64(1)
        codes = codes + stays.action.astype(np.uint64) * factor
    codes[stays.offsets[:-1]] += _code_rows(stays.static, salt + b"static")
    return codes


def _hash(texts: Iterable[bytes | memoryview], salt: bytes, purpose: bytes) -> Hashes:
    """Keyed hashes of eight bytes; the same text gives another for another purpose."""
    fresh = hashlib.blake2b(digest_size=8, key=salt + purpose).copy
    digests = []
    for text in texts:
        keyed = fresh()
        keyed.update(text)
        digests.append(keyed.digest())
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def _label(name: object) -> bytes:
    """A name as text: 7, 7.0 and "7" are one and the same."""
    whole = isinstance(name, float) and name.is_integer()
    return str(int(name) if whole else name).encode(errors="surrogatepass")  # type: ignore[call-overload]


def _name_space(stays: Trajectories) -> bytes:
    """Simulated stays are numbered anew for each seed, and each database numbers its own."""
    about = stays.schema.provenance
    if "seed" not in about:
        return f"{about['cohort']}|".encode(errors="surrogatepass") if "cohort" in about else b""
    return repr(sorted(about.items())).encode(errors="surrogatepass") + b"|"


def _code_rows(rows: Features | Floats32, salt: bytes) -> Hashes:
    """A number for each row, the same for the same values, shape (n,).

    A sum of the values' bits, each times a secret odd number: quick for millions of rows, and two
    rows that differ agree with a chance below one in a billion.
    """
    if isinstance(rows, Coded):
        used = rows.without_unused()
        return _code_each(replace(used, code=np.arange(len(used.table), dtype=np.int32)), salt)[
            used.code
        ]
    return _code_each(rows, salt)


def _code_each(rows: Features | Floats32, salt: bytes) -> Hashes:
    """A number for each row, a block of them expanded at a time."""
    columns = (f"{place}".encode() for place in range(rows.shape[1]))
    odd = _hash(columns, salt, b"row") | np.uint64(1)
    codes = np.empty(len(rows), np.uint64)
    for start in range(0, len(rows), _BLOCK):
        values = np.asarray(rows[start : start + _BLOCK], np.float32) + np.float32(0)  # no -0
        if (gaps := np.isnan(values)).any():
            values[gaps] = np.nan  # one of many
        codes[start : start + _BLOCK] = values.view(np.uint32).astype(np.uint64) @ odd
    return codes
