"""Scaling fitted on training stays only, by the groups of the Sepsis-3 cohort."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from etips.data.coded import Coded, Features, Floats32
from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require

LOG_SHIFT = 0.1
"""Added before the logarithm, as the cohort's scripts do, so that a dose of zero has one."""

LIMIT = 10.0
"""Scaled values are held within this many standard deviations: one typing error must not rule."""

SEPSIS_LOG = (
    *("SpO2", "BUN", "Creatinine", "SGOT", "SGPT", "Total_bili", "INR"),
    *("input_total", "input_4hourly", "output_total", "output_4hourly", "max_dose_vaso"),
)
"""Features of the Sepsis-3 cohort whose logarithm is standardised."""

_CHUNK = 65_536  # rows that are added up together
_BLOCK = 4096  # rows that are scaled together: few enough for the processor's own memory


@dataclass(eq=False)
class Scaler:
    """Standardise features, by their logarithm where that is asked for; leave 0/1 columns alone.

    Columns named in `leave` are left as they are, and so are those that hold only 0 and 1 in the
    training stays, unless `log` names them. Missing values (NaN) become the training mean. Any
    other column that never varies becomes 0.

    Args:
        log: Features to standardise after ln(0.1 + x); names that the data lacks are ignored.
        leave: Features to leave as they are.
    """

    log: Collection[str] = ()
    leave: Collection[str] = ()
    mean_: dict[str, float] = field(default_factory=dict, init=False)
    scale_: dict[str, float] = field(default_factory=dict, init=False)
    left_: frozenset[str] = field(default=frozenset(), init=False)

    def fit(self, data: Trajectories) -> Self:
        """Learn mean and spread of every feature from these stays, and from no others."""
        self.mean_, self.scale_, self.left_ = {}, {}, frozenset()
        if set(self.log) & set(self.leave):
            raise SettingError("scaler", "a feature is either in log or in leave")
        self._learn(data.sequence, data.schema.sequence)
        self._learn(data.static, data.schema.static)
        return self

    def transform(self, data: Trajectories) -> Trajectories:
        """The same stays with scaled features; a coded sequence stays coded."""
        self._require_logs(data.sequence, data.schema.sequence)
        self._require_logs(data.static, data.schema.static)
        return data.with_features(
            self._apply(data.sequence, data.schema.sequence),
            self._apply_plain(data.static, data.schema.static),
        )

    def fit_transform(self, data: Trajectories) -> Trajectories:
        """Fit on these stays and scale them."""
        return self.fit(data).transform(data)

    def to_json(self) -> dict[str, object]:
        """What was learned, JSON-ready: aggregate statistics, no row."""
        return {
            "log": sorted(self.log),
            "leave": sorted(self.leave),
            "mean": dict(self.mean_),
            "scale": dict(self.scale_),
            "left": sorted(self.left_),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> Self:
        """Rebuild a fitted scaler."""
        try:
            made = cls(log=_texts(document["log"]), leave=_texts(document["leave"]))
            made.mean_ = _numbers(document["mean"])
            made.scale_ = _numbers(document["scale"])
            made.left_ = frozenset(_texts(document["left"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise SettingError("scaler", "is not as it was saved") from error
        complete = made.left_ <= set(made.mean_) == set(made.scale_)
        if not complete or min(made.scale_.values(), default=1.0) <= 0:
            raise SettingError("scaler", "is not as it was saved")
        return made

    def _learn(self, features: Features, names: Sequence[str]) -> None:
        self._require_logs(features, names)
        table, weight = _distinct_rows(features)
        total, squares, count = (np.zeros(len(names)) for _ in range(3))
        binary = np.ones(len(names), bool)
        for rows, times in _chunks(table, weight):
            gaps = np.isnan(rows)
            left = rows[:, binary]  # nothing but 0, 1 and gaps so far
            binary[binary] = ((left == 0) | (left == 1) | np.isnan(left)).all(axis=0)
            values = self._logs(rows, names)
            if some := bool(gaps.any()):
                values[gaps] = 0.0
            total += times @ values
            count += times @ ~gaps if some else times.sum()  # whole numbers: exact in any order
        mean = total / np.maximum(count, 1)
        for rows, times in _chunks(table, weight):  # a second look: squares of centred values only
            values = self._logs(rows, names)
            values -= mean
            values[np.isnan(values)] = 0.0
            values *= values
            squares += times @ values
        scale = np.sqrt(squares / np.maximum(count, 1))
        scale[scale <= 1e-7 * np.maximum(np.abs(mean), 1)] = 1.0  # float32 noise is no variation
        self.mean_ |= dict(zip(names, mean.tolist(), strict=True))
        self.scale_ |= dict(zip(names, scale.tolist(), strict=True))
        self.left_ |= {name for name, two in zip(names, binary, strict=True) if two} - set(self.log)
        self.left_ |= set(names) & set(self.leave)

    def _logs(self, rows: Floats32, names: Sequence[str]) -> Floats:
        """The rows in float64, with the logarithm taken where it is asked for."""
        values = rows.astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):  # rows of a coded table nobody uses
            for position, name in enumerate(names):
                if name in self.log:
                    values[:, position] = np.log(LOG_SHIFT + values[:, position])
        return values

    def _require_logs(self, features: Features, names: Sequence[str]) -> None:
        """Refuse what has no logarithm, counting rows of the data and not of a part of it."""
        for position, name in enumerate(names):
            if name in self.log:
                column = _column(features, position)
                rule = f"must be above {-LOG_SHIFT} for its logarithm"
                require(f"feature {name}", rule, (column > -LOG_SHIFT) | np.isnan(column))

    def _apply(self, features: Features, names: Sequence[str]) -> Features:
        if not isinstance(features, Coded):
            return self._apply_plain(features, names)
        if self.left_ >= set(names):
            return features
        used = features.without_unused()
        return Coded(self._apply_plain(used.expanded_table(), names), used.code)

    def _apply_plain(self, rows: Floats32, names: Sequence[str]) -> Floats32:
        unknown = [name for name in names if name not in self.mean_]
        if unknown:
            raise DataError(f"feature {unknown[0]}", "is not one the scaler was fitted on")
        mean = np.array([self.mean_[name] for name in names])
        scale = np.array([self.scale_[name] for name in names])
        left = np.array([name in self.left_ for name in names], bool)
        applied = np.empty(rows.shape, np.float32)
        for start in range(0, len(rows), _BLOCK):
            part = rows[start : start + _BLOCK]
            scaled = self._logs(part, names)
            scaled -= mean
            scaled /= scale
            np.clip(scaled, -LIMIT, LIMIT, out=scaled)
            scaled[np.isnan(scaled)] = 0.0
            if left.any():
                scaled = np.where(left, np.where(np.isnan(part), mean, part), scaled)
            applied[start : start + _BLOCK] = scaled
        return applied


def _distinct_rows(features: Features) -> tuple[Features, Floats | None]:
    """Rows to look at and how often each counts: a coded sequence needs its table only once."""
    if not isinstance(features, Coded):
        return features, None
    times = np.bincount(features.code, minlength=len(features.table)).astype(np.float64)
    used = np.flatnonzero(times).astype(np.int32)
    return Coded(features.table, used, features.unit), times[used]


def _column(features: Features, position: int) -> Floats32:
    if not isinstance(features, Coded):
        return features[:, position]
    column = Coded(features.table[:, [position]], features.code, features.unit)
    return column[:].ravel()


def _chunks(table: Features, weight: Floats | None) -> Iterator[tuple[Floats32, Floats]]:
    for start in range(0, len(table), _CHUNK):
        rows = table[start : start + _CHUNK]
        yield rows, np.ones(len(rows)) if weight is None else weight[start : start + _CHUNK]


def _texts(value: object) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError
    return value


def _numbers(value: object) -> dict[str, float]:
    if not isinstance(value, dict):
        raise TypeError
    numbers = {str(key): float(item) for key, item in value.items()}
    if not np.isfinite(list(numbers.values())).all():
        raise ValueError
    return numbers
