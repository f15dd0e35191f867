"""Trajectories: every step of every stay stored once, decisions as an index into them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from etips.data.coded import Coded, Features, Floats32, Truth, read_only
from etips.data.decisions import (
    NO_ACTION,
    PER_STEP,
    Bools,
    Decisions,
    Floats,
    Ints,
    Loss,
    MissingLoss,
    Stay,
    find_decisions,
    require_missing_loss,
)
from etips.data.schema import Schema
from etips.errors import DataError, require

_CHUNK = 4096  # rows looked at together, so that they stay near the processor

Stays = slice | Sequence[int] | NDArray[np.integer[Any]] | NDArray[np.bool_]


class Histories(NamedTuple):
    """Expanding windows, one a decision: padded at the end, shape (n, longest, features)."""

    sequence: Floats32
    lengths: Ints
    static: Floats32

    def __repr__(self) -> str:
        return f"Histories(sequence={self.sequence.shape}, static={self.static.shape})"


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories:
    """Logged stays. Arrays are read-only and checked once; sub-setting shares what it can.

    Without a log (`action` and `loss` both None) every step is a question: what to do here?

    Args:
        sequence: Sequential features, shape (total_steps, d); stay after stay, steps in order.
        offsets: Where each stay starts, shape (n_stays + 1,); the last entry is total_steps.
        schema: Names, roles, number of actions, and `lag`.
        action: The logged action 0..K-1, or -1 where none is known, shape (total_steps,).
        loss: Loss of the logged action, NaN where it is not known, shape (total_steps,).
        static: Static features, shape (n_stays, s).
        propensity: Known probability of the logged action, in (0, 1] at every decision.
        eligible: False at a step that must not become a decision, shape (total_steps,).
        stay: Identifier of each stay, shape (n_stays,); 0, 1, ... if left out.
        step: Label of each step, rising within a stay, shape (total_steps,); 0, 1, ... if left out.
        group: Whom the stay belongs to (a patient), for splits, shape (n_stays,).
        truth: Only in simulated worlds.
        negative_control: Something measured before the action, which it cannot have changed; NaN
            where it is not known, shape (total_steps,). No policy sees it.
        missing_loss: "drop": a step whose loss is not known is no decision. "weight": it is one,
            and whoever learns or evaluates lets decisions with a loss speak for it
            (`etips.evaluation.censoring`).
    """

    sequence: Features
    offsets: Ints
    schema: Schema
    action: Ints | None = None
    loss: Floats | None = None
    static: Floats32 = None  # type: ignore[assignment]  # filled below, so never None to a reader
    propensity: Floats | None = None
    eligible: Bools | None = None
    stay: NDArray[Any] = None  # type: ignore[assignment]
    step: NDArray[Any] = None  # type: ignore[assignment]
    group: NDArray[Any] | None = None
    truth: Truth | None = None
    negative_control: Floats | None = None
    missing_loss: MissingLoss = "drop"

    def __post_init__(self) -> None:
        offsets = self.offsets
        sound = offsets.ndim == 1 and offsets.size >= 2 and np.issubdtype(offsets.dtype, np.integer)
        if not sound or offsets[0] != 0 or (np.diff(offsets) < 1).any():
            raise DataError("offsets", "must start at 0 and rise: every stay has at least one step")
        lengths = np.diff(offsets)
        defaults: dict[str, NDArray[Any]] = {
            "static": np.zeros((lengths.size, 0), np.float32),
            "stay": np.arange(lengths.size),
            "step": np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths),
        }
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        _require_shapes(self)
        _require_features("sequence", self.sequence, self.schema.sequence, self.schema)
        _require_features("static", self.static, self.schema.static, self.schema)
        _require_log(self)
        _freeze(self)

    @property
    def n_stays(self) -> int:
        """Number of stays."""
        return len(self.offsets) - 1

    @property
    def n_steps(self) -> int:
        """Number of steps of all stays together."""
        return int(self.offsets[-1])

    @property
    def n_decisions(self) -> int:
        """Number of decisions."""
        return len(self.decisions().stay)

    @property
    def n_actions(self) -> int:
        """Number of actions K."""
        return self.schema.n_actions

    @property
    def lag(self) -> int:
        """1 if a decision sees only earlier steps, 0 if also its own."""
        return self.schema.lag

    @property
    def logged(self) -> bool:
        """Whether actions and losses are there."""
        return self.action is not None

    @cached_property
    def _decisions(self) -> Decisions:
        known: Bools | None = None
        if self.action is not None and self.loss is not None:
            known = np.asarray(self.action != NO_ACTION)
            if self.missing_loss == "drop":
                known = known & ~np.isnan(self.loss)
            if self.eligible is not None:
                known = known & self.eligible
        stay, step = find_decisions(self.offsets, self.lag, known)
        return Decisions(read_only(stay), read_only(step))

    def decisions(self) -> Decisions:
        """The decisions (stay, step), counted from 0, in the order of every `predict_proba`."""
        return self._decisions

    @cached_property
    def decision_rows(self) -> Ints:
        """Row of each decision in the per-step arrays, shape (n_decisions,).

        For data without a log the row may be one past the stay's end.
        """
        stay, step = self._decisions
        return read_only(self.offsets[stay] + step)

    @property
    def seen_rows(self) -> Ints:
        """Row that each decision's history ends at, shape (n_decisions,)."""
        return self.decision_rows - self.lag

    @cached_property
    def units(self) -> Ints:
        """Whom each stay belongs to, numbered from 0: the patient if known, else the stay itself.

        Shape (n_stays,). Stays of one unit are not independent: they are dealt together and their
        decisions are one piece of evidence.
        """
        labels = self.stay if self.group is None else self.group
        return read_only(np.unique(labels, return_inverse=True)[1])

    @property
    def cluster(self) -> Ints:
        """The unit (see `units`) of each decision, shape (n_decisions,)."""
        return self.units[self._decisions.stay]

    @property
    def logged_action(self) -> Ints:
        """The logged action of each decision, shape (n_decisions,)."""
        return self._of_log(self.action)[self.decision_rows]

    @property
    def logged_loss(self) -> Floats:
        """The loss of each decision's logged action, NaN if not known, shape (n_decisions,)."""
        return self._of_log(self.loss)[self.decision_rows]

    @property
    def logged_propensity(self) -> Floats:
        """The known propensity of each decision's logged action, shape (n_decisions,)."""
        if self.propensity is None:
            raise DataError(
                "propensity", "is not in the data", fix="Estimate it, or name its column."
            )
        return self.propensity[self.decision_rows]

    @staticmethod
    def _of_log(values: NDArray[Any] | None) -> NDArray[Any]:
        if values is None:
            raise DataError(
                "data", "holds no logged actions", fix="Name the action and loss columns."
            )
        return values

    def histories(self, chosen: slice | Ints = slice(None)) -> Histories:
        """Copy out expanding windows, for a model that cannot read a stay in one pass.

        This is the form the paper trains on. It repeats every step many times; ask for a part of
        the decisions at a time where memory matters.

        Args:
            chosen: Which decisions, as positions in decision order.
        """
        stay = self._decisions.stay[chosen]
        lengths = self._decisions.step[chosen] + 1 - self.lag
        window = np.arange(lengths.max(initial=0))
        inside = window < lengths[:, None]
        rows = np.where(inside, self.offsets[stay][:, None] + window, 0)
        windows = self.sequence[rows.ravel()].reshape(*rows.shape, self.sequence.shape[1])
        windows[~inside] = 0
        return Histories(windows, lengths, self.static[stay])

    def subset(self, stays: Stays) -> Self:
        """The chosen stays, in the order given. Neighbours share memory, others copy their rows.

        Args:
            stays: A slice, positions, or one yes or no a stay.
        """
        numbers = np.arange(self.n_stays)
        if isinstance(stays, slice):
            numbers = numbers[stays]
        else:
            numbers = numbers[np.asarray(stays)] if len(stays) else numbers[:0]
        if numbers.size == 0:
            raise DataError("subset", "must keep at least one stay")
        lengths = np.diff(self.offsets)[numbers]
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        rows: slice | Ints
        which: slice | Ints
        if (np.diff(numbers) == 1).all():
            rows = slice(self.offsets[numbers[0]], self.offsets[numbers[-1] + 1])
            which = slice(numbers[0], numbers[-1] + 1)
        else:
            rows = np.arange(offsets[-1]) + np.repeat(self.offsets[numbers] - offsets[:-1], lengths)
            which = numbers
        sequence, truth = self.sequence, self.truth
        return self._trusted(
            sequence=sequence.take(rows) if isinstance(sequence, Coded) else sequence[rows],
            offsets=offsets,
            schema=self.schema,
            static=self.static[which],
            stay=self.stay[which],
            group=None if self.group is None else self.group[which],
            truth=truth and replace(truth, code=truth.code[rows]),
            missing_loss=self.missing_loss,
            **{
                name: None if (value := getattr(self, name)) is None else value[rows]
                for name in (*PER_STEP, "step")
            },
        )

    @classmethod
    def _trusted(cls, **values: Any) -> Self:  # noqa: ANN401  # the fields, whatever their types
        """Build from parts of checked data without looking at every number again."""
        made = object.__new__(cls)
        for name in (f.name for f in fields(cls)):
            object.__setattr__(made, name, values[name])
        _freeze(made)
        return made

    def with_lag(self, lag: int) -> Self:
        """The same steps under the other history rule."""
        return replace(self, schema=replace(self.schema, lag=lag))

    def with_loss(self, loss: Loss) -> Self:
        """The same stays with the loss computed afresh by a function of a stay.

        A simulated world knows the truth of its own loss only, so that does not come along.
        """
        names, steps = self.schema.sequence, np.split(self.step, self.offsets[1:-1])
        losses = [
            loss(Stay(step, self.sequence[start:stop], names))
            for step, start, stop in zip(steps, self.offsets, self.offsets[1:], strict=False)
        ]
        values = np.concatenate(losses)
        if np.isnan(values).all():
            raise DataError("loss", "is known at no step", fix="Do the step labels rise by one?")
        return replace(self, loss=values, truth=None)

    def with_features(self, sequence: Features, static: Floats32) -> Self:
        """The same stays with their features replaced, by scaled ones say."""
        return replace(self, sequence=sequence, static=static)

    def without_log(self) -> Self:
        """The same stays as questions: no action, no loss, every step a decision."""
        bare = replace(self, action=None, loss=None, propensity=None, eligible=None, truth=None)
        return replace(bare, negative_control=None)

    def true_risk(self, probabilities: Floats) -> float:
        """Exact risk of a policy at the logged decisions; only a simulated world knows it."""
        expected = self._of_truth("expected_loss")
        if probabilities.shape != expected.shape:
            raise DataError(
                "probabilities", "must have one row a decision and one column an action"
            )
        return float(np.einsum("na,na->", probabilities, expected) / len(expected))

    def true_logging(self) -> Floats:
        """The true logging policy at each decision, shape (n_decisions, n_actions)."""
        return self._of_truth("logging")

    def true_expected_loss(self) -> Floats:
        """True expected loss of each action at each decision, shape (n_decisions, n_actions)."""
        return self._of_truth("expected_loss")

    def _of_truth(self, name: str) -> Floats:
        if self.truth is None:
            raise DataError("truth", "is known only in simulated data")
        table: Floats = getattr(self.truth, name)
        return table[self.truth.code[self.decision_rows]]

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write a Trajectories folder; it appears whole or not at all."""
        # Files need pyarrow; learning does not, and must run where only torch and numpy are.
        storage = import_module("etips.data.storage")
        storage.save_trajectories(self, Path(folder), overwrite=overwrite)

    def __repr__(self) -> str:
        parts = [
            f"n_stays={self.n_stays:,}",
            f"n_steps={self.n_steps:,}",
            f"n_decisions={self.n_decisions:,}",
            f"sequence={self.sequence.shape[1]} features",
            f"static={self.static.shape[1]}",
            f"n_actions={self.n_actions}",
            f"lag={self.lag}",
        ]
        held = ("propensity", "eligible", "group", "truth", "negative_control")
        parts += [f"with {name}" for name in held if getattr(self, name) is not None]
        return f"Trajectories({', '.join(parts)})"


def _freeze(data: Trajectories) -> None:
    """Make the arrays read-only; views, so that a caller's own array keeps its flags."""
    for name in (f.name for f in fields(data)):
        value = getattr(data, name)
        if isinstance(value, np.ndarray):
            object.__setattr__(data, name, read_only(value))


def _require_codes(where: str, code: NDArray[np.int32], n_codes: int) -> None:
    """Refuse row numbers that do not point into their table."""
    require(where, f"codes must be in 0..{n_codes - 1}", (code >= 0) & (code < n_codes))


def _require_features(where: str, values: Features, names: Sequence[str], schema: Schema) -> None:
    """Refuse what is not finite, naming the column; NaN passes where the schema allows it."""
    if values.dtype != np.float32:
        raise DataError(where, "must be float32")
    if isinstance(values, Coded):
        _require_codes(where, values.code, len(values.table))
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


def _require_log(data: Trajectories) -> None:
    """Refuse steps that fall, and actions, losses and propensities that none may be."""
    rises = np.ones(data.n_steps, bool)
    rises[1:] = data.step[1:] > data.step[:-1]
    rises[data.offsets[:-1]] = True
    require("step", "must rise within a stay", rises)
    if data.action is None or data.loss is None:
        return
    whole = np.issubdtype(data.action.dtype, np.integer)
    in_range = (data.action >= NO_ACTION) & (data.action < data.schema.n_actions)
    rule = f"must be whole, 0..{data.schema.n_actions - 1}, or {NO_ACTION} where there is none"
    require("action", rule, in_range & whole)
    require_missing_loss(data.missing_loss)
    for name, values in (("loss", data.loss), ("negative_control", data.negative_control)):
        if values is not None:
            require(name, "must be finite, or NaN where it is not known", ~np.isinf(values))
    if data.propensity is not None:
        valid = (data.propensity > 0) & (data.propensity <= 1)
        idle = np.ones(data.n_steps, bool)
        idle[data.decision_rows] = False
        require("propensity", "must be in (0, 1] at every decision", valid | idle)


def _require_shapes(data: Trajectories) -> None:
    if (data.action is None) != (data.loss is None):
        raise DataError("action, loss", "must be given together or not at all")
    steps, stays = (data.n_steps,), (data.n_stays,)
    shapes: dict[str, tuple[int, ...]] = {
        "sequence": (*steps, len(data.schema.sequence)),
        "static": (*stays, len(data.schema.static)),
        **dict.fromkeys((*PER_STEP, "step"), steps),
        **dict.fromkeys(("stay", "group"), stays),
    }
    for name, shape in shapes.items():
        value = getattr(data, name)
        if value is not None and value.shape != shape:
            raise DataError(name, f"must have shape {shape}, has {value.shape}")
    if data.truth is not None:
        if data.truth.code.shape != steps:
            raise DataError("truth", f"must have shape {steps}, has {data.truth.code.shape}")
        table = (len(data.truth.expected_loss), data.schema.n_actions)
        if data.truth.expected_loss.shape != table or data.truth.logging.shape != table:
            raise DataError("truth", "its tables must have one row a code and one column an action")
        _require_codes("truth", data.truth.code, len(data.truth.expected_loss))
