"""What a policy keeps of its log: salted hashes of the stays it learned from, and aggregates.

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
from etips.disclosure import hide_together, shown_parts
from etips.evaluation.inference.checks import code_ids

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
    """How many of some stays, and of their patients, a policy learned from.

    Args:
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
        """The hashes of some stays; see `make_salt`."""
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
            counts = np.unique(traces.starts, return_counts=True)[1]
            equal = float((counts * (counts - 1)).sum() / (n * max(n - 1, 1)))  # of two, by chance
            by_name &= agree.mean() > max(_limit(equal, len(agree), n), 0.5)
        by_content = np.isin(traces.contents, self.contents)
        repeated = max(_repeated(self.contents), _repeated(traces.contents))
        limit = _limit(repeated, n, len(self.contents))
        enough = by_content.mean() > limit and (by_content.sum() > A_FEW or _tell_apart(stays))
        by_content &= enough
        named = stays.group is not None and not self.patients_numbered
        named = named and not are_counted(stays.group)  # type: ignore[arg-type]
        return Overlap(
            n_stays=int((by_name | by_content).sum()),
            n_patients=int(np.isin(traces.patients, self.patients).sum()) if named else 0,
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


@dataclass(frozen=True)
class Origin:
    """How often each action was taken, and what came of it, where a policy was learned.

    Args:
        action_shares: Share of the decisions by action; None where that would tell of a few.
        mean_loss: Of the logged actions; None likewise.
    """

    action_shares: tuple[float | None, ...]
    mean_loss: float | None

    @classmethod
    def of(cls, stays: Trajectories) -> Self:
        """That of a log."""
        action, k = stays.logged_action, stays.n_actions
        counts = np.bincount(action, minlength=k)
        ids, code = code_ids(stays.cluster)
        people = np.unique(action * ids.size + code) // ids.size  # the action of each pair
        hidden = hide_together(np.bincount(people, minlength=k), counts)
        total = max(int(counts.sum()), 1)
        shares = tuple(
            None if gone else float(n / total) for n, gone in zip(counts, hidden, strict=True)
        )
        loss = stays.logged_loss
        loss = loss[~np.isnan(loss)]
        mean = float(loss.mean()) if loss.size else None
        if np.isin(loss, (0, 1)).all():  # times the decisions it is a count of events
            events, _ = shown_parts(int(loss.sum()), loss.size - int(loss.sum()))
            mean = None if events is None else mean
        return cls(shares, mean)

    def to_json(self) -> dict[str, object]:
        """As a manifest holds it."""
        return {"action_shares": list(self.action_shares), "mean_loss": self.mean_loss}

    @classmethod
    def from_json(cls, document: object, n_actions: int) -> Self:
        """What `to_json` gave; a ValueError, TypeError or KeyError if it is not."""
        told: Any = document
        shares = tuple(None if own is None else float(own) for own in told["action_shares"])
        loss = None if told["mean_loss"] is None else float(told["mean_loss"])
        numbers = [own for own in (*shares, loss) if own is not None]
        if len(shares) != n_actions or not np.isfinite(numbers).all():
            raise ValueError("the shares of actions are not those of a log")
        return cls(shares, loss)


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
    counts = np.unique(hashes, return_counts=True)[1]
    return float(counts[counts > 1].sum() / hashes.size)


def _tell_apart(stays: Trajectories) -> bool:
    """Whether some feature is so fine that hardly two stays begin with the same value of it."""
    rows = np.concatenate([stays.sequence[stays.offsets[:-1]], stays.static], axis=1)
    return any(np.unique(column).size >= DISTINCT * len(rows) for column in rows.T)


def _trace(stays: Trajectories, salt: bytes) -> _Traces:
    space, groups = _name_space(stays), () if stays.group is None else np.unique(stays.group)
    names = _hash((space + _label(name) for name in stays.stay.tolist()), salt, b"stay")
    # A number for each step: of its features and action, and of the static ones at the first.
    codes = _code_rows(stays.sequence, salt + b"step")
    if stays.action is not None:
        factor = _hash([b""], salt, b"action") | np.uint64(1)
        codes = codes + stays.action.astype(np.uint64) * factor
    codes[stays.offsets[:-1]] += _code_rows(stays.static, salt + b"static")
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
    code = None
    if isinstance(rows, Coded):
        used = rows.without_unused()
        code, rows = used.code, replace(used, code=np.arange(len(used.table), dtype=np.int32))
    columns = (f"{place}".encode() for place in range(rows.shape[1]))
    odd = _hash(columns, salt, b"row") | np.uint64(1)
    codes = np.empty(len(rows), np.uint64)
    for start in range(0, len(rows), _BLOCK):  # as many are expanded at a time
        values = np.asarray(rows[start : start + _BLOCK], np.float32) + np.float32(0)  # no -0
        if (gaps := np.isnan(values)).any():
            values[gaps] = np.nan  # one of many
        codes[start : start + _BLOCK] = values.view(np.uint32).astype(np.uint64) @ odd
    return codes if code is None else codes[code]
