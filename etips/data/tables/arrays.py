"""Arrays as scikit-learn users hold them."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etips.data.coded import Floats32
from etips.data.decisions import NO_ACTION, Bools, Floats, Ints, MissingLoss
from etips.data.intake.recipe import ActionReading, Recipe
from etips.data.schema import MOST_ACTIONS, Schema
from etips.data.tables.array_actions import number_labels
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require


def from_arrays(
    features: ArrayLike,
    action: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    *,
    static: ArrayLike | None = None,
    lengths: ArrayLike | None = None,
    propensity: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    n_actions: int | None = None,
    lag: int = 0,
    missing_loss: MissingLoss = "drop",
) -> Trajectories:
    """Trajectories from arrays: one row a stay.

    Args:
        features: Shape (n, d) when there is no time, or (n, steps, d) padded at the end.
        action: Shape (n,): one decision a stay, at its last step. Or (n, steps), with -1 (or NaN)
            where there is none; text names them. Left out with `loss`, the stays are questions.
        loss: Loss of the logged action, same shape as `action`; NaN only where there is no action,
            or with `missing_loss="weight"`.
        static: Static features, shape (n, s).
        lengths: Number of real steps of each row of a 3-D `features`; all of them if left out.
        propensity: Known probability of the logged action, same shape as `action`; or of every one,
            with an axis more. `etips.evaluate(propensities=...)` takes the whole table.
        groups: Whom each row belongs to, shape (n,).
        n_actions: Number of actions; one more than the largest if left out.
        lag: 0 if a decision sees its own step (the only choice without time), 1 if not.
        missing_loss: "weight" allows actions without a loss, as in `read_table`.
    """
    padded = _padded(features)
    action, names = number_labels(action, n_actions)
    counts = _lengths(lengths, *padded.shape[:2])
    inside = np.arange(padded.shape[1]) < counts[:, None]
    log = _log(action, loss, propensity, counts, inside, n_actions)
    _require_losses(log, counts, missing_loss)
    known = (int(log["action"].max(initial=0)) if log else 0) + 1
    still = _static(static, len(counts))
    data = Trajectories(
        sequence=padded[inside],
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        schema=_schema(padded, still, known if n_actions is None else n_actions, lag, names),
        static=still,
        group=None if groups is None else np.asarray(groups),
        missing_loss=missing_loss,
        **log,  # type: ignore[arg-type]  # each of its own kind, checked by Trajectories
    )
    if data.n_decisions == 0:
        raise DataError("action", "must hold at least one decision", fix="See lag.")
    return data


def as_trajectories(
    data: Trajectories | ArrayLike,
    action: ArrayLike | None = None,
    loss: ArrayLike | None = None,
    **more: Any,  # noqa: ANN401  # the keyword arguments of from_arrays
) -> Trajectories:
    """Trajectories as they are, or arrays as `from_arrays` takes them."""
    if isinstance(data, Trajectories):
        if action is not None or loss is not None or any(v is not None for v in more.values()):
            raise SettingError("data", "must be Trajectories alone, or arrays")
        return data
    return from_arrays(data, action, loss, **{k: v for k, v in more.items() if v is not None})


def _log(
    action: ArrayLike | None,
    loss: ArrayLike | None,
    propensity: ArrayLike | None,
    counts: Ints,
    inside: Bools,
    n_actions: int | None,
) -> dict[str, NDArray[Any]]:
    """Action, loss and propensity of every real step, where they are given."""
    if (action is None) != (loss is None):
        raise DataError("action, loss", "must be given together or not at all")
    if action is None or loss is None:
        if propensity is not None:
            raise DataError("propensity", "needs action and loss")
        return {}
    row = np.repeat(np.arange(len(counts)), counts)  # of the arrays, for refusals
    taken = _per_step("action", action, counts, inside)
    idle = np.isnan(taken) | (taken == NO_ACTION)
    most = (n_actions or MOST_ACTIONS) - 1
    valid = (taken >= 0) & (taken <= most) & (taken == np.round(taken))
    rule = f"must be whole, 0..{most}, or {NO_ACTION} where there is none"
    require("action", rule, valid | idle, rows=row)
    log = {
        "action": np.where(idle, NO_ACTION, taken).astype(np.int64),
        "loss": _per_step("loss", loss, counts, inside),
    }
    if propensity is not None:
        known = of_logged(numeric("propensity", propensity), numeric("action", action))
        log["propensity"] = _per_step("propensity", known, counts, inside)
    return log


def _require_losses(log: dict[str, NDArray[Any]], counts: Ints, missing_loss: MissingLoss) -> None:
    """Refuse infinite losses, and actions without one unless they are to be weighted for."""
    if not log:
        return
    loss, row = log["loss"], np.repeat(np.arange(len(counts)), counts)
    spared = log["action"] == NO_ACTION
    if missing_loss == "weight":
        spared |= np.isnan(loss)
    require("loss", "must be finite", np.isfinite(loss) | spared, rows=row)


def _schema(
    padded: Floats32, static: Floats32, n_actions: int, lag: int, names: tuple[str, ...]
) -> Schema:
    """Features are called x0, x1, ... and s0, s1, ..."""
    reading = ActionReading(("action",), tuple((name,) for name in names))
    return Schema(
        sequence=tuple(f"x{i}" for i in range(padded.shape[2])),
        n_actions=n_actions,
        static=tuple(f"s{i}" for i in range(static.shape[1])),
        lag=lag,
        actions=names,
        recipe=Recipe(action=reading) if names else None,
    )


def of_logged(propensity: Floats, action: Floats) -> Floats:
    """Propensity of the logged action, from one of every action on a last axis, or as it is.

    Args:
        propensity: Same shape as `action`, or with an axis of actions behind it.
        action: Logged actions; -1 or NaN where there is none.
    """
    if propensity.shape[:-1] != action.shape or propensity.ndim != action.ndim + 1:
        return propensity
    none = np.isnan(action) | (action < 0)
    chosen = np.where(none, 0, action).astype(np.int64)
    rule = "must have a column for every action that was logged"
    if chosen.size and chosen.max() >= propensity.shape[-1]:
        raise DataError("propensity", rule)
    sums = np.abs(propensity.sum(axis=-1) - 1) <= 1e-5
    require("propensity", "must sum to 1 over the actions", (sums | none).ravel())
    return np.where(none, np.nan, np.take_along_axis(propensity, chosen[..., None], -1)[..., 0])


def _padded(features: ArrayLike) -> Floats32:
    """Features as (n, steps, d) float32."""
    padded = _float32("features", features)
    if padded.ndim == 2:
        padded = padded[:, None]
    if padded.ndim != 3 or 0 in padded.shape[:2]:
        rule = "must have shape (n, d) or (n, steps, d) and a row"
        raise DataError("features", rule, fix="Reshape your data.")
    return padded


def _lengths(lengths: ArrayLike | None, n: int, longest: int) -> Ints:
    if lengths is None:
        return np.full(n, longest)
    counts = np.asarray(lengths)
    if counts.shape != (n,) or not np.issubdtype(counts.dtype, np.integer):
        raise DataError("lengths", "must be one whole number a row of the features")
    require("lengths", f"must be in 1..{longest}", (counts >= 1) & (counts <= longest))
    return counts.astype(np.int64)


def _per_step(name: str, values: ArrayLike, counts: Ints, inside: Bools) -> Floats:
    """One value a real step: given so, or one a stay, which then belongs to its last step."""
    numbers = numeric(name, values)
    if numbers.shape == counts.shape:
        spread = np.full(inside.shape, np.nan)
        spread[np.arange(len(counts)), counts - 1] = numbers
        numbers = spread
    if numbers.shape != inside.shape:
        rule = f"must have shape {counts.shape} or {inside.shape}, has {numbers.shape}"
        raise DataError(name, rule)
    return numbers[inside]


def _static(static: ArrayLike | None, n: int) -> Floats32:
    if static is None:
        return np.zeros((n, 0), np.float32)
    table = _float32("static", static)
    if table.ndim != 2 or len(table) != n:
        raise DataError("static", f"must have shape ({n}, s)")
    return table


def _float32(name: str, values: ArrayLike) -> Floats32:
    with np.errstate(over="ignore"):  # too large for float32 is refused as infinite
        return numeric(name, values).astype(np.float32)


def numeric(name: str, values: ArrayLike) -> Floats:
    """Values as an array of real numbers; anything else is refused by its name."""
    if hasattr(values, "toarray"):  # as SciPy's sparse arrays and matrices have
        raise DataError(name, "must be dense", fix="Sparse input is not supported: use toarray().")
    try:
        array = np.asarray(values)
        if not np.iscomplexobj(array):
            return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(name, "must be an array of numbers") from None
    raise DataError(name, "must be real", fix="Complex data not supported.")
