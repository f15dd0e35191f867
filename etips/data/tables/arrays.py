"""Arrays as scikit-learn users hold them, and dictionaries of the Open Bandit Pipeline (obp)."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from etips.data.coded import Floats32
from etips.data.decisions import NO_ACTION, Bools, Floats, Ints, MissingLoss
from etips.data.recipe import ActionReading, Recipe
from etips.data.schema import MOST_ACTIONS, Schema
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError, require

_MOST_LABELS = 200  # as in a table: more are an identifier or free text


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
    padded = _float32("features", features)
    padded = padded[:, None] if padded.ndim == 2 else padded
    if padded.ndim != 3 or 0 in padded.shape[:2]:
        rule = "must have shape (n, d) or (n, steps, d) and a row"
        raise DataError("features", rule, fix="Reshape your data.")
    action, names = _number_labels(action, n_actions)
    counts = _lengths(lengths, *padded.shape[:2])
    inside = np.arange(padded.shape[1]) < counts[:, None]
    log = _log(action, loss, propensity, counts, inside, n_actions, missing_loss)
    known = (int(log["action"].max(initial=0)) if log else 0) + 1
    fixed = np.zeros((len(counts), 0), np.float32)
    if static is not None:
        fixed = _float32("static", static)
        if fixed.ndim != 2 or len(fixed) != len(counts):
            raise DataError("static", f"must have shape ({len(counts)}, s)")
    reading = ActionReading(("action",), tuple((name,) for name in names))
    schema = Schema(
        sequence=tuple(f"x{i}" for i in range(padded.shape[2])),
        n_actions=known if n_actions is None else n_actions,
        static=tuple(f"s{i}" for i in range(fixed.shape[1])),
        lag=lag,
        actions=names,
        recipe=Recipe(action=reading) if names else None,
    )
    data = Trajectories(
        sequence=padded[inside],
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        schema=schema,
        static=fixed,
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
    missing_loss: MissingLoss,
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
    losses = _per_step("loss", loss, counts, inside)
    log = {"action": np.where(idle, NO_ACTION, taken).astype(np.int64), "loss": losses}
    if propensity is not None:
        known = _of_logged(numeric("propensity", propensity), numeric("action", action))
        log["propensity"] = _per_step("propensity", known, counts, inside)
    spared = idle | np.isnan(losses) if missing_loss == "weight" else idle
    require("loss", "must be finite", np.isfinite(losses) | spared, rows=row)
    return log


def _of_logged(propensity: Floats, action: Floats) -> Floats:
    """Propensity of the logged action, from one of every action on a last axis, or as it is."""
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


def _number_labels(
    action: ArrayLike | None, n_actions: int | None
) -> tuple[ArrayLike | None, tuple[str, ...]]:
    """Actions as numbers, and their names if they were text; anything else is left as it is."""
    cells = None if action is None else np.asarray(action)
    if cells is None or cells.dtype.kind not in "OU":
        return action, ()
    flat = cells.ravel().tolist()
    try:
        np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError):
        words = any(isinstance(cell, str) for cell in flat)
    else:
        words = False
    if not words:
        return action, ()
    known = [
        cell is None or isinstance(cell, str) or (isinstance(cell, float) and np.isnan(cell))
        for cell in flat
    ]
    require("action", "must be text or numbers, not both", np.array(known))
    labels = [" ".join(cell.split()) if isinstance(cell, str) else "" for cell in flat]
    names = tuple(sorted({label for label in labels if label}))
    if len(names) > _MOST_LABELS:
        raise DataError("action", f"must hold at most {_MOST_LABELS} different labels")
    if n_actions is not None and n_actions != len(names):
        rule = f"must be the number of labels, which is {len(names)} here"
        raise SettingError("n_actions", rule, fix="Leave it out.")
    place = {name: float(number) for number, name in enumerate(names)}
    numbers: Floats = np.array([place.get(label, np.nan) for label in labels])
    return numbers.reshape(cells.shape), names


Feedback = Mapping[str, ArrayLike | None]


def from_obp(feedback: Feedback, *, n_positions: int | None = None) -> Trajectories:
    """Trajectories from an obp feedback dictionary; its reward becomes loss = 1 - reward.

    A position is part of what is visible at a round: it becomes one column each of the features,
    behind the context. What describes the actions (`action_context`) has no place here.

    Args:
        feedback: Reads `context`, `action`, `reward`, and if there `position`, `pscore`,
            `n_actions` and `n_rounds`.
        n_positions: How many there are; one more than the largest if left out. Say it where not
            all may occur, lest two parts of a data set have different features.
    """
    for name in ("context", "action", "reward"):
        if feedback.get(name) is None:
            raise DataError(f"feedback, {name}", "must be there")
    context = numeric("feedback, context", cast(ArrayLike, feedback["context"]))
    said = feedback.get("n_rounds")
    if said is not None and said != len(np.atleast_1d(context)):
        raise DataError("feedback, n_rounds", "must be the number of rows of the context")
    position = _positions(feedback)
    top = int(position.max(initial=0)) + 1
    if n_positions is not None and n_positions < top:
        raise SettingError("n_positions", "must be more than every position")
    seen = np.asarray(position[:, None] == np.arange(n_positions or top), np.float64)
    if seen.shape[1] > 1 and context.ndim == 2:
        context = np.concatenate([context, seen], axis=1)
    return from_arrays(
        context,
        feedback["action"],
        1.0 - numeric("feedback, reward", cast(ArrayLike, feedback["reward"])),
        propensity=feedback.get("pscore"),
        n_actions=cast("int | None", feedback.get("n_actions")),
    )


def obp_propensities(feedback: Feedback) -> Floats | None:
    """Known probability of every action (`pi_b`), for `etips.evaluate(propensities=...)`.

    Shape (n_rounds, n_actions), of each round's own position; None where the feedback has none.
    """
    if feedback.get("pi_b") is None:
        return None
    table = numeric("feedback, pi_b", cast(ArrayLike, feedback["pi_b"]))
    if table.ndim == 2:
        return table
    position = _positions(feedback)
    if table.ndim != 3 or len(table) != len(position):
        raise DataError("feedback, pi_b", "must have shape (n_rounds, n_actions, n_positions)")
    require("feedback, position", "must be a column of pi_b", position < table.shape[2])
    return table[np.arange(len(table)), :, position]


def to_obp(data: Trajectories) -> dict[str, ArrayLike | None]:
    """An obp feedback dictionary, one round a decision; reward = 1 - loss.

    The context is what a decision's last visible step and its stay's static features say; what came
    before it has no place in obp.
    """
    seen = data.sequence[data.seen_rows]
    context = np.concatenate([seen, data.static[data.decisions().stay]], axis=1)
    return {
        "n_rounds": data.n_decisions,
        "n_actions": data.n_actions,
        "context": context,
        "action": data.logged_action,
        "reward": 1.0 - data.logged_loss,
        "pscore": None if data.propensity is None else data.logged_propensity,
        "position": None,
    }


def _positions(feedback: Feedback) -> Ints:
    """Position of each round, shape (n_rounds,); 0 where there is no other."""
    n = len(np.atleast_1d(np.asarray(feedback["action"])))
    if feedback.get("position") is None:
        return np.zeros(n, np.int64)
    values = numeric("feedback, position", cast(ArrayLike, feedback["position"]))
    if values.shape != (n,):
        raise DataError("feedback, position", "must be one number a round")
    whole = (values >= 0) & (values == np.round(values)) & (values < 2**16)
    require("feedback, position", "must be whole and not negative", whole)
    return values.astype(np.int64)
