"""Which feature at which step speaks for an action, and which against it.

Networks are attributed by integrated gradients (through Captum): from the average patient to this
one in a straight line, the gradients along it times the way. What the features get adds up to the
difference between the two, and that is checked for every answer. Everything else, trees and models
of several kinds that speak as one, gets Shapley values by columns of the table: a column is the
patient's at every step and in every summary of it, or the average patient's. What that adds stands
at the last visible step.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.explanation.feature_names import columns_of, organ_systems, summary_places
from etips.explanation.preference import Histories, Preference
from etips.models.row_model import Reads
from etips.policies.asking import singles
from etips.policies.policy import FittedPolicy

TOLERANCE = 0.01
"""How far the sum of the attributions may be off, as a share of what it should be."""

_POINTS = (24, 96, 384, 1536)  # on the way from the average patient; more where the sum is off
_AT_ONCE = 64  # decisions
_MOST_INPUTS = 4096  # histories that networks read at once
_CANCELLED = 0.05  # sums below this share of the sizes are what is left after cancelling
ORDERS = 16
"""Of columns, in sampled Shapley values."""

_ORDERS_OF_MANY = 4  # where many decisions are averaged anyway
_NEGLIGIBLE = 1e-9  # a difference of preferences that is none


@dataclass(frozen=True, eq=False)
class Attribution:
    """What speaks for an action over another at one decision; positive is for it.

    Args:
        columns: Of the table that change from step to step; the action before among them where the
            policy reads it.
        static_columns: Those that do not.
        steps: Labels of the steps that the decision may see, shape (n_steps,).
        values: Shape (n_steps, columns), in the unit below.
        static_values: Shape (static columns,).
        preference: How much the policy prefers the action to the other, for this patient.
        reference: The same for the average patient.
        groups: Columns by organ system, where the cohort knows them; otherwise empty.
    """

    action: int
    against: int
    columns: tuple[str, ...]
    static_columns: tuple[str, ...]
    steps: NDArray[Any]
    values: Floats
    static_values: Floats
    preference: float
    reference: float
    unit: str
    by: str
    groups: Mapping[str, tuple[str, ...]]

    @property
    def total(self) -> float:
        """What all of them add up to, if they are complete."""
        return self.preference - self.reference

    @property
    def completeness_error(self) -> float:
        """How far their sum is off, as a share of what it should be; see `incompleteness`."""
        every = np.concatenate([self.values.ravel(), self.static_values])
        return float(incompleteness(every[None], np.array([self.total]))[0])

    @property
    def complete(self) -> bool:
        """Whether the sum is right to one per cent."""
        return self.completeness_error <= TOLERANCE

    def by_column(self) -> dict[str, float]:
        """Sum over the steps of each column, the strongest first.

        What speaks for the action at one step and against it at another cancels here: look at
        `values` for when.
        """
        sums = dict(zip(self.columns, self.values.sum(axis=0).tolist(), strict=True))
        sums |= dict(zip(self.static_columns, self.static_values.tolist(), strict=True))
        return dict(sorted(sums.items(), key=lambda item: -abs(item[1])))

    def by_group(self) -> dict[str, float]:
        """Sum over the columns of each organ system, in the order of `groups`."""
        sums = self.by_column()
        return {name: sum(sums[column] for column in own) for name, own in self.groups.items()}

    def to_json(self) -> dict[str, object]:
        """JSON-ready."""
        return vars(self) | {
            "completeness_error": self.completeness_error,
            "steps": [str(label) for label in self.steps],
            "columns": list(self.columns),
            "values": self.values.tolist(),
            "static_columns": list(self.static_columns),
            "static_values": self.static_values.tolist(),
            "groups": {name: list(own) for name, own in self.groups.items()},
            "by_group": self.by_group(),
        }


@dataclass(frozen=True, eq=False)
class FeatureValues:
    """Attributions of several decisions, by input of the networks.

    Args:
        steps: Shape (n, longest, n_features); 0 past the end of a history.
        static: Shape (n, n_static).
        preference: Shape (n,).
        reference: Shape (n,).
    """

    steps: Floats
    static: Floats
    preference: Floats
    reference: Floats


def attribute(
    policy: FittedPolicy,
    stay: Trajectories,
    step: int,
    action: int,
    against: int | None = None,
) -> Attribution:
    """What speaks for an action at a decision of one stay.

    Args:
        policy: Fitted.
        stay: One stay, in the units of the table the policy was fitted on.
        step: Of the decision, counted from 0, as `decisions()` counts.
        action: What is explained.
        against: The action it is compared with; the likeliest of the others if left out.
    """
    place = place_of(stay, step)
    k = policy.schema.n_actions
    if against is None:
        chances = policy.answer(stay).probabilities[place].copy()
        chances[action] = -1
        against = int(chances.argmax())
    if not (0 <= action < k and 0 <= against < k and action != against):
        raise SettingError("action", f"and what it is compared with must be two of 0..{k - 1}")
    preference = Preference(policy)
    histories = preference.read(stay).take(np.array([place]))
    values = attribute_inputs(preference, histories, np.array([action]), np.array([against]))
    columns, static = columns_of(policy)
    return Attribution(
        action=action,
        against=against,
        columns=columns.names,
        static_columns=static.names,
        steps=stay.step[: int(histories.last[0]) + 1],
        values=columns.total(values.steps[0]),
        static_values=static.total(values.static[0]),
        preference=float(values.preference[0]),
        reference=float(values.reference[0]),
        unit=preference.unit,
        by=described(preference),
        groups=organ_systems((*columns.names, *static.names)),
    )


def place_of(stay: Trajectories, step: int) -> int:
    """Number of the decision at a step of one stay; refused where there is none."""
    if stay.n_stays != 1:
        raise DataError("stay", "must be one stay", fix="Take it by data.subset([number]).")
    found = np.flatnonzero(stay.decisions().step == step)
    if not found.size:
        raise DataError("step", "must be that of a decision of the stay")
    return int(found[0])


def attribute_inputs(
    preference: Preference, histories: Histories, action: Ints, against: Ints
) -> FeatureValues:
    """Attributions of several decisions at once, each between two actions of its own."""
    n, longest, width = histories.steps.shape
    values = FeatureValues(
        np.zeros((n, longest, width)),
        np.zeros((n, histories.static.shape[1])),
        np.zeros(n),
        np.zeros(n),
    )
    if preference.is_mixed:
        _add_mixed(preference, histories, action, against, values)
        return values
    order = np.argsort(histories.last.numpy(), kind="stable")
    for start in range(0, n, _AT_ONCE):
        chosen = order[start : start + _AT_ONCE]
        own = histories.take(chosen)
        _add_networks(preference, own, action[chosen], against[chosen], values, chosen)
    return values


def incompleteness(values: Floats, wanted: Floats) -> Floats:
    """How far sums are off, as a share of what they should be, shape (n,).

    Where nearly everything cancels, the share is of a twentieth of the sizes that cancel.

    Args:
        values: Attributions, shape (n, inputs).
        wanted: What they should add up to, shape (n,).
    """
    off = np.abs(values.sum(axis=1) - wanted)
    scale = np.maximum(np.abs(wanted), _CANCELLED * np.abs(values).sum(axis=1))
    return np.where(off < _NEGLIGIBLE, 0.0, off / np.maximum(scale, _NEGLIGIBLE))


def described(preference: Preference) -> str:
    """What was attributed and how, in words."""
    networks, own = preference.networks, preference.policy
    if networks is not None:
        return f"integrated gradients of the mean of {networks.n_members} networks"
    speak = singles((own.networks, own.propensity if own.lean or not own.networks else None))
    models = "one model" if len(speak) == 1 else f"{len(speak)} models as one"
    return f"Shapley values, by sampled orders, of {models}"


def _add_networks(
    preference: Preference,
    own: Histories,
    action: Ints,
    against: Ints,
    values: FeatureValues,
    chosen: Ints,
) -> None:
    """Integrated gradients, with more points where the sum is off."""
    step, static = preference.reference()
    origin = step.expand_as(own.steps), static.expand_as(own.static)
    asked = (own.last, torch.from_numpy(action), torch.from_numpy(against))
    with torch.no_grad():
        here = preference.by_networks(own.steps, own.static, *asked).numpy()
        there = preference.by_networks(*origin, *asked).numpy()
    values.preference[chosen] += here
    values.reference[chosen] += there
    left = np.arange(len(chosen))
    for points in _POINTS:
        index = torch.from_numpy(left)
        part = [value[index] for value in (own.steps, own.static, *origin)]
        pair = _integrate(preference, part, [value[index] for value in asked], points)
        rows = chosen[left]
        values.steps[rows, : own.steps.shape[1]] = pair[0]
        values.static[rows] = pair[1]
        every = np.concatenate([pair[0].reshape(len(left), -1), pair[1]], axis=1)
        left = left[incompleteness(every, (here - there)[left]) > TOLERANCE / 2]
        if not left.size:
            break


def _integrate(
    preference: Preference, part: list[torch.Tensor], asked: list[torch.Tensor], points: int
) -> tuple[Floats, Floats]:
    """Captum's integrated gradients of steps and static features."""
    steps, static, *origin = part
    has_static = bool(static.shape[1])  # Captum has no gradient of what is empty

    def ask(inputs: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
        fixed = more[:1] if has_static else (inputs.new_zeros(len(inputs), 0),)
        return preference.by_networks(inputs, *fixed, *more[-3:])

    # Where all would be too many at once; Captum wants one point of each at least.
    batch = None if len(steps) * points <= _MOST_INPUTS else max(_MOST_INPUTS, len(steps))
    n = 1 + has_static
    values = _captum()(ask).attribute(
        (steps, static)[:n],
        tuple(origin[:n]),
        additional_forward_args=tuple(asked),
        n_steps=points,
        internal_batch_size=batch,
    )
    of_steps, *of_static = (own.detach().numpy() for own in values)
    return of_steps, of_static[0] if has_static else np.zeros((len(steps), 0))


def _captum() -> Any:  # noqa: ANN401  # a class of a package that may be missing
    try:
        from captum.attr import IntegratedGradients  # noqa: PLC0415  # optional
    except ImportError:
        fix = "Install it with: pip install 'etips[explain]'."
        raise SettingError("explaining networks", "needs captum", fix=fix) from None
    return IntegratedGradients


def _add_mixed(
    preference: Preference, histories: Histories, action: Ints, against: Ints, values: FeatureValues
) -> None:
    """Sampled Shapley values of the columns of the table, of all models as one."""
    schema, (step, static) = preference.policy.schema, preference.reference()
    by_step, fixed = columns_of(preference.policy)
    n_columns = len(by_step.names) + len(fixed.names)
    column = np.concatenate([by_step.of_feature, fixed.of_feature + len(by_step.names)])
    of_row: dict[Reads, Ints] = {}  # the column of the table behind each of a row
    for reads in ("last", *histories.summaries):
        feature, constant = summary_places(schema, reads)
        of_row[reads] = column[np.where(constant >= 0, len(step) + constant, feature)]
    average = preference.reference_row()
    first = [int(np.flatnonzero(column == number)[0]) for number in range(n_columns)]

    for row in range(len(action)):
        one = histories.take(np.array([row]))

        def say(taken: Floats, one: Histories = one, row: int = row) -> Floats:
            own = taken > 0
            inputs = torch.from_numpy(own[:, column])
            rows = np.where(own[:, of_row["last"]], one.rows, average)
            summaries = {
                reads: np.where(own[:, of_row[reads]], table, one.average[reads])
                for reads, table in one.summaries.items()
            }
            asked = Histories(
                torch.where(inputs[:, None, : len(step)], one.steps, step),
                torch.where(inputs[:, len(step) :], one.static, static),
                one.last.expand(len(taken)),
                rows,
                summaries,
            )
            scores = preference.scores(asked)
            return np.asarray(scores[:, action[row]] - scores[:, against[row]])

        all_or_none = np.stack([np.ones(n_columns), np.zeros(n_columns)])
        orders = ORDERS if len(action) == 1 else _ORDERS_OF_MANY
        shares = np.zeros(len(column))
        shares[first] = row_shares(say, *all_or_none, orders=orders)
        values.steps[row, int(one.last[0])] += shares[: len(step)]
        values.static[row] += shares[len(step) :]
        here, there = say(all_or_none)
        values.preference[row] += here
        values.reference[row] += there


def row_shares(
    say: Callable[[Floats], Floats],
    row: Floats,
    reference: Floats,
    *,
    seed: int = 0,
    orders: int = ORDERS,
) -> Floats:
    """Shapley values of any model of rows, by sampled orders of its columns, shape (d,).

    Columns are exchanged one after another from the reference row to the patient's; what each
    changes is its share in that order. Shares of an order add up to the whole difference, so their
    mean does. Every order is also walked backwards, which halves the noise.

    Args:
        say: What is explained: a number for each of some rows.
        row: The patient's, shape (d,).
        reference: The same of whom they are compared with.
        seed: Of the orders.
        orders: How many, an even number.
    """
    same = (row == reference) | (np.isnan(row) & np.isnan(reference))
    differ = np.flatnonzero(~same)
    shares = np.zeros(len(row))
    if not differ.size:
        return shares
    generator = np.random.default_rng(seed)
    drawn = [generator.permutation(differ) for _ in range(orders // 2)]
    both = np.array([order for own in drawn for order in (own, own[::-1])])  # (orders, n)
    n_orders, n = both.shape
    columns = np.sort(differ)
    rank = np.argsort(np.searchsorted(columns, both), axis=1)  # place of each column in an order
    taken = rank[:, None, :] < np.arange(n + 1)[:, None]  # (orders, steps, n)
    rows = np.repeat(reference[None], n_orders * (n + 1), axis=0)
    rows[:, columns] = np.where(
        taken.reshape(-1, n), row[columns], np.broadcast_to(reference[columns], (1, n))
    )
    said = say(rows).reshape(n_orders, n + 1)
    change = np.diff(said, axis=1)  # by place in the order
    shares[columns] = np.take_along_axis(change, rank, axis=1).mean(axis=0)
    return shares
