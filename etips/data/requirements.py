"""What the arrays of Trajectories must satisfy, each refused by place, rule and row."""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from etips.data.coded import Coded, Features
from etips.data.decisions import NO_ACTION, Ints, MissingLoss
from etips.data.schema import Schema
from etips.data.stay_arrays import StayArrays
from etips.errors import DataError, SettingError, require

_CHUNK = 4096  # rows looked at together, so that they stay near the processor


def require_offsets(offsets: Ints) -> None:
    """Refuse offsets that do not cut the steps into stays of at least one."""
    sound = offsets.ndim == 1 and offsets.size >= 2 and np.issubdtype(offsets.dtype, np.integer)
    if not sound or offsets[0] != 0 or (np.diff(offsets) < 1).any():
        raise DataError("offsets", "must start at 0 and rise: every stay has at least one step")


def require_steps(step: NDArray[Any], offsets: Ints) -> None:
    """Refuse step labels that do not rise within a stay."""
    rises = np.ones(len(step), bool)
    rises[1:] = step[1:] > step[:-1]
    rises[offsets[:-1]] = True
    require("step", "must rise within a stay", rises)


def require_codes(where: str, code: NDArray[np.int32], n_codes: int) -> None:
    """Refuse row numbers that do not point into their table."""
    require(where, f"codes must be in 0..{n_codes - 1}", (code >= 0) & (code < n_codes))


def require_features(where: str, values: Features, names: Sequence[str], schema: Schema) -> None:
    """Refuse what is not finite, naming the column; NaN passes where the schema allows it."""
    if values.dtype != np.float32:
        raise DataError(where, "must be float32")
    if isinstance(values, Coded):
        require_codes(where, values.code, len(values.table))
        if not np.isfinite(values.unit):
            raise DataError(where, "must have a finite unit")
        if np.issubdtype(values.table.dtype, np.integer):
            return
        values = values.expanded_table()
    may_be_missing = np.array([schema.may_be_missing(name) for name in names], bool)
    for start in range(0, len(values), _CHUNK):
        part = values[start : start + _CHUNK]
        finite = np.isfinite(part)
        if finite.all():
            continue
        bad = ~finite
        bad[:, may_be_missing] = np.isinf(part[:, may_be_missing])
        if bad.any():
            column = int(bad.any(axis=0).argmax())
            wrong = ~np.isfinite(values[:, column])
            if may_be_missing[column]:
                wrong = np.isinf(values[:, column])
            place = f"{where}, feature {names[column]}"
            rows = np.flatnonzero(wrong)
            raise DataError(place, "must be finite", rows=rows, total=len(values))


def require_missing_loss(value: str) -> None:
    """Refuse any other word."""
    if value not in get_args(MissingLoss):
        raise SettingError("missing_loss", 'must be "drop" or "weight"')


def require_sound(data: StayArrays) -> None:
    """Refuse arrays that do not fit together, or hold what none of them may."""
    _check_shapes(data)
    require_features("sequence", data.sequence, data.schema.sequence, data.schema)
    require_features("static", data.static, data.schema.static, data.schema)
    require_steps(data.step, data.offsets)
    if data.action is None or data.loss is None:
        return
    whole = np.issubdtype(data.action.dtype, np.integer)
    in_range = (data.action >= NO_ACTION) & (data.action < data.schema.n_actions)
    rule = f"must be whole, 0..{data.schema.n_actions - 1}, or {NO_ACTION} where there is none"
    require("action", rule, in_range & whole)
    require("loss", "must be finite, or NaN where it is not known", ~np.isinf(data.loss))
    require_missing_loss(data.missing_loss)
    if data.negative_control is not None:
        rule = "must be finite, or NaN where it is not known"
        require("negative_control", rule, ~np.isinf(data.negative_control))
    if data.propensity is not None:
        valid = (data.propensity > 0) & (data.propensity <= 1)
        idle = np.ones(data.n_steps, bool)
        idle[data.decision_rows] = False
        require("propensity", "must be in (0, 1] at every decision", valid | idle)


def _check_shapes(data: StayArrays) -> None:
    n_stays, n_steps = data.n_stays, data.n_steps
    if (data.action is None) != (data.loss is None):
        raise DataError("action, loss", "must be given together or not at all")
    code = None if data.truth is None else data.truth.code
    for name, value, shape in (
        ("sequence", data.sequence, (n_steps, len(data.schema.sequence))),
        ("static", data.static, (n_stays, len(data.schema.static))),
        ("action", data.action, (n_steps,)),
        ("loss", data.loss, (n_steps,)),
        ("propensity", data.propensity, (n_steps,)),
        ("eligible", data.eligible, (n_steps,)),
        ("negative_control", data.negative_control, (n_steps,)),
        ("stay", data.stay, (n_stays,)),
        ("step", data.step, (n_steps,)),
        ("group", data.group, (n_stays,)),
        ("truth", code, (n_steps,)),
    ):
        if value is not None and value.shape != shape:
            raise DataError(name, f"must have shape {shape}, has {value.shape}")
    if data.truth is not None:
        table = (len(data.truth.expected_loss), data.schema.n_actions)
        if data.truth.expected_loss.shape != table or data.truth.logging.shape != table:
            raise DataError("truth", "its tables must have one row a code and one column an action")
        require_codes("truth", data.truth.code, len(data.truth.expected_loss))
