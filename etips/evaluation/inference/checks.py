"""What the arrays of an evaluation must satisfy; every refusal names the place and the row."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etips.errors import DataError, SettingError, require

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.float32] | NDArray[np.float64]

SUM_TOLERANCE = 1e-5  # a float32 softmax over 25 actions is off by up to about 1e-6


@dataclass(frozen=True)
class Clusters:
    """Which cluster each decision belongs to, coded 0..k-1 in the order of the sorted ids."""

    code: Ints  # (n,)
    ids: NDArray[Any]  # (k,)

    @property
    def size(self) -> int:
        """How many clusters there are."""
        return self.ids.size

    def sums(self, values: Floats) -> Floats:
        """Total of `values` (n,) in each cluster, shape (k,)."""
        return totals(self.code, values, self.size)


def totals(place: Ints, values: Floats, size: int) -> Floats:
    """Sum of `values` at each place 0..size-1, shape (size,)."""
    return np.bincount(place, values, size).astype(np.float64, copy=False)


ClusterLike: TypeAlias = ArrayLike | Clusters


def code_clusters(cluster: ClusterLike, *, n: int) -> Clusters:
    """Code the clusters of `n` decisions; a single one is refused, it has no spread."""
    if isinstance(cluster, Clusters):  # coded before, by a `Log`
        _require_rows("cluster", cluster.code, n)
        return cluster
    ids = np.asarray(cluster)
    _require_rows("cluster", ids, n)
    if ids.dtype.kind == "f":
        require("cluster", "must be a whole number", np.isfinite(ids) & (ids == np.floor(ids)))
        ids = ids.astype(np.int64)
    unique, code = code_ids(ids)
    if unique.size < 2:
        raise DataError(
            "cluster",
            "must name at least two clusters",
            fix="One cluster has no spread to learn from.",
        )
    return Clusters(code, unique)


def code_ids(ids: NDArray[Any]) -> tuple[NDArray[Any], Ints]:
    """The distinct ids, sorted, and the place of each of `ids` (n,) among them, shape (n,)."""
    if ids.dtype.kind in "iu" and ids.min() >= 0 and ids.max() < 4 * ids.size:
        present = np.bincount(ids) > 0  # sorting a million ids takes ten times as long
        return np.flatnonzero(present), (np.cumsum(present) - 1)[ids]
    unique, code = np.unique(ids, return_inverse=True)
    return unique, code.astype(np.int64, copy=False)


def check_numbers(where: str, values: ArrayLike, *, n: int | None = None) -> Floats:
    """Finite numbers, one a row, `n` of them where given."""
    numbers = _as_floats(where, values)
    _require_rows(where, numbers, n)
    require(where, "must be finite", np.isfinite(numbers))
    return numbers


def check_weights(where: str, values: ArrayLike, *, n: int) -> Floats:
    """Finite numbers of at least zero."""
    weight = _as_floats(where, values)
    _require_rows(where, weight, n)
    require(where, "must be finite and not negative", np.isfinite(weight) & (weight >= 0))
    return weight


def check_counts(values: ArrayLike | None, *, n: int) -> Floats | None:
    """How many times each decision counts; None stands for once."""
    return None if values is None else check_weights("count", values, n=n)


def check_propensity(values: ArrayLike, *, n: int) -> Floats:
    """Probabilities of the logged actions: never zero, for they were taken."""
    propensity = _as_floats("propensity", values)
    _require_rows("propensity", propensity, n)
    rule = "must be above 0 and at most 1"
    require("propensity", rule, (propensity > 0) & (propensity <= 1 + SUM_TOLERANCE))
    return propensity


def check_actions(values: ArrayLike, *, n: int, n_actions: int) -> Ints:
    """Whole numbers 0..n_actions-1."""
    action = _as_floats("action", values)
    _require_rows("action", action, n)
    rule = f"must be a whole number from 0 to {n_actions - 1}"
    whole = (action >= 0) & (action < n_actions) & (action == np.floor(action))
    require("action", rule, whole)
    return action.astype(np.int64)


def check_table(where: str, values: ArrayLike, *, n: int, width: int | None = None) -> Floats:
    """Finite numbers, shape (n, width)."""
    table = _as_floats(where, values)
    if table.ndim != 2 or table.shape[1] == 0 or (width is not None and table.shape[1] != width):
        shape = "one column for each action" if width is None else f"{width} columns"
        raise DataError(where, f"must have two axes and {shape}")
    _require_rows(where, table, n, axes=2)
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf, or huge but finite values
        suspect = not np.isfinite(table @ np.ones(table.shape[1])).all()
    if suspect:  # one pass through memory for good input, the careful look only for bad
        require(where, "must be finite", _every(np.isfinite(table)))
    return table


def check_features(values: ArrayLike, *, n: int) -> Rows:
    """What is visible at each decision: numbers, NaN where missing, shape (n, d)."""
    rows = np.asarray(values)
    if rows.dtype != np.float32:  # half the memory of a million wide rows
        rows = _as_floats("features", values)
    if rows.ndim != 2:
        raise DataError("features", "must have two axes, one row a decision")
    _require_rows("features", rows, n, axes=2)
    require("features", "must be finite, or NaN where missing", _every(~np.isinf(rows)))
    return rows


def check_probabilities(
    where: str, values: ArrayLike, *, n: int, n_actions: int | None = None
) -> Floats:
    """A distribution over the actions in every row, shape (n, n_actions)."""
    table = check_table(where, values, n=n, width=n_actions)
    inside = table.min() >= 0 and table.max() <= 1 + SUM_TOLERANCE
    if not inside:
        fair = (table >= 0) & (table <= 1 + SUM_TOLERANCE)
        require(where, "must lie between 0 and 1", _every(fair))
    total = table @ np.ones(table.shape[1])
    require(where, "must sum to one in every row", np.abs(total - 1) <= SUM_TOLERANCE)
    return table


def weigh_logged(probability: Floats, propensity: Floats) -> Floats:
    """Policy probability over propensity, both of the logged action and checked, shape (n,)."""
    with np.errstate(over="ignore"):
        weight = probability / propensity
    require("propensity", "must not be so small that a weight is infinite", np.isfinite(weight))
    return weight


def check_share(name: str, value: float) -> float:
    """A setting strictly between 0 and 1."""
    if not 0 < value < 1:
        raise SettingError(name, "must lie between 0 and 1")
    return value


def _every(holds: Bools) -> Bools:
    return np.asarray(holds.all(axis=1), dtype=np.bool_)


def _as_floats(where: str, values: ArrayLike) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        # from None: NumPy's own message shows the value that it could not read
        raise DataError(where, "must be numbers, with rows of one length") from None


def _require_rows(where: str, values: NDArray[Any], n: int | None, *, axes: int = 1) -> None:
    if values.ndim != axes:
        raise DataError(where, "must have one entry a decision")
    if values.shape[0] == 0:
        raise DataError(where, "must have at least one row")
    if n is None or values.shape[0] == n:
        return
    rows = range(min(n, values.shape[0]), max(n, values.shape[0]))
    raise DataError(
        where,
        "must have as many rows as there are decisions",
        rows=rows,
        total=max(n, values.shape[0]),
    )
