"""Which feature at which step speaks for an action, and which against it.

Networks are attributed by integrated gradients (through Captum): from the average patient to this
one in a straight line, the gradients along it times the way. What the features get adds up to the
difference between the two, and that is checked for every answer. Trees are attributed by their
Shapley values against the same average patient, which is exact.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.errors import DataError, SettingError
from etips.explanation.feature_names import Columns, organ_systems, summary_places
from etips.explanation.preference import Histories, Preference
from etips.explanation.row_shares import row_shares
from etips.explanation.tree_shares import tree_shares
from etips.policies.policy import FittedPolicy

TOLERANCE = 0.01
"""How far the sum of the attributions may be off, as a share of what it should be."""

_POINTS = (24, 96, 384, 1536)  # on the way from the average patient; more where the sum is off
_AT_ONCE = 64  # decisions
_MOST_INPUTS = 4096  # histories that networks read at once
_CANCELLED = 0.05  # sums below this share of the sizes are what is left after cancelling
_NEGLIGIBLE = 1e-9  # a difference of preferences that is none


@dataclass(frozen=True, eq=False)
class Attribution:
    """What speaks for an action over another at one decision; positive is for it.

    Args:
        action: The one.
        against: The other.
        columns: Of the table that change from step to step; the action before among them where the
            policy reads it.
        static_columns: Those that do not.
        steps: Labels of the steps that the decision may see, shape (n_steps,).
        values: Shape (n_steps, columns), in the unit below.
        static_values: Shape (static columns,).
        preference: How much the policy prefers the action to the other, for this patient.
        reference: The same for the average patient.
        unit: "log-odds", or "predicted loss".
        by: What was attributed and how.
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
        return {
            "action": self.action,
            "against": self.against,
            "unit": self.unit,
            "by": self.by,
            "preference": self.preference,
            "reference": self.reference,
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
        action: What is explained, 0..K-1.
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
    schema = policy.schema
    earlier = schema.n_actions if policy.earlier_actions else 0
    columns = Columns.of(schema, schema.sequence, earlier_actions=earlier)
    static = Columns.of(schema, schema.static)
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
    """Attributions of several decisions at once, each between two actions of its own.

    Args:
        preference: What is attributed.
        histories: Of the decisions.
        action: Of each, shape (n,).
        against: Of each, shape (n,).
    """
    n, longest, width = histories.steps.shape
    values = FeatureValues(
        np.zeros((n, longest, width)),
        np.zeros((n, histories.static.shape[1])),
        np.zeros(n),
        np.zeros(n),
    )
    if preference.networks is not None:
        order = np.argsort(histories.last.numpy(), kind="stable")
        for start in range(0, n, _AT_ONCE):
            chosen = order[start : start + _AT_ONCE]
            own = histories.take(chosen)
            _add_networks(preference, own, action[chosen], against[chosen], values, chosen)
    if preference.trees is not None:
        _add_trees(preference, histories, action, against, values)
    if preference.row_model is not None:
        _add_rows(preference, histories, action, against, values)
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
    parts = []
    if preference.networks is not None:
        count = preference.networks.n_members
        parts.append(f"integrated gradients of the mean of {count} networks")
    if preference.trees is not None:
        parts.append("Shapley values of boosted trees")
    if preference.row_model is not None:
        parts.append("Shapley values, by sampled orders, of a model of single rows")
    return " and ".join(parts)


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
    gradients = _captum()(preference.by_networks)
    steps, static, from_steps, from_static = part
    if not static.shape[1]:  # Captum has no gradient of what is empty

        def of_steps(inputs: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
            empty = inputs.new_zeros(len(inputs), 0)
            return preference.by_networks(inputs, empty, *more)

        gradients = _captum()(of_steps)
        values = gradients.attribute(
            steps,
            from_steps,
            additional_forward_args=tuple(asked),
            n_steps=points,
            internal_batch_size=_batch(steps, points),
        )
        return values.detach().numpy(), np.zeros((len(steps), 0))
    pair = gradients.attribute(
        (steps, static),
        (from_steps, from_static),
        additional_forward_args=tuple(asked),
        n_steps=points,
        internal_batch_size=_batch(steps, points),
    )
    return pair[0].detach().numpy(), pair[1].detach().numpy()


def _batch(steps: torch.Tensor, points: int) -> int | None:
    """Histories at once, where all of them would be too many; Captum wants one point at least."""
    return None if len(steps) * points <= _MOST_INPUTS else max(_MOST_INPUTS, len(steps))


def _captum() -> Any:  # noqa: ANN401  # a class of a package that may be missing
    try:
        from captum.attr import IntegratedGradients  # noqa: PLC0415  # optional
    except ImportError:
        fix = "Install it with: pip install 'etips[explain]'."
        raise SettingError("explaining networks", "needs captum", fix=fix) from None
    return IntegratedGradients


def _add_trees(
    preference: Preference, histories: Histories, action: Ints, against: Ints, values: FeatureValues
) -> None:
    """Shapley values, which trees have of the last visible step alone."""
    assert preference.trees is not None
    forest, sign = preference.trees
    reference = preference.reference_row()
    outputs = forest.outputs(np.concatenate([histories.rows, reference[None]])).mean(axis=0) * sign
    n_actions, n_features = outputs.shape[1], len(preference.policy.schema.sequence)
    for row in range(len(action)):
        lean = np.zeros(n_actions)
        lean[action[row]], lean[against[row]] = sign, -sign
        shares = tree_shares(forest, histories.rows[row], reference, lean)
        last = int(histories.last[row])
        values.steps[row, last, :n_features] += shares[:n_features]
        values.static[row] += shares[n_features:]
        values.preference[row] += outputs[row, action[row]] - outputs[row, against[row]]
        values.reference[row] += outputs[-1, action[row]] - outputs[-1, against[row]]


def _add_rows(
    preference: Preference, histories: Histories, action: Ints, against: Ints, values: FeatureValues
) -> None:
    """Sampled Shapley values; what a summary makes of a feature counts at the last visible step."""
    assert preference.row_model is not None
    model, sign = preference.row_model
    feature, static = summary_places(preference.policy.schema, model.reads)
    for row in range(len(action)):

        def say(rows: Floats, row: int = row) -> Floats:
            scores = model.outputs(rows).mean(axis=0) * sign
            return np.asarray(scores[:, action[row]] - scores[:, against[row]])

        own = histories.table(model)[row]
        shares = row_shares(say, np.where(np.isnan(own), model.mean, own), model.mean)
        last = int(histories.last[row])
        np.add.at(values.steps[row, last], feature[feature >= 0], shares[feature >= 0])
        np.add.at(values.static[row], static[static >= 0], shares[static >= 0])
        here, there = say(np.stack([own, model.mean]))
        values.preference[row] += here
        values.reference[row] += there
