"""What a policy recommends, as a table: for the command line, and for a service."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from etips.data.decisions import Ints
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.disclosure import hide_together
from etips.policies.policy import Answer, FittedPolicy


@dataclass(frozen=True, eq=False)
class Recommendations:
    """What a policy would do at every decision of some stays.

    Args:
        stays: The data.
        answer: The policy's.
        advised: The action that it recommends, shape (n_decisions,).
    """

    stays: Trajectories
    answer: Answer
    advised: Ints

    @classmethod
    def of(cls, policy: FittedPolicy, stays: Trajectories) -> Self:
        """Ask a policy; what the data do not say of the actions, it does."""
        answer = policy.answer(stays)
        known, own = policy.schema, stays.schema
        if not own.actions and known.actions:
            told = {"actions": known.actions, "n_actions": known.n_actions, "recipe": known.recipe}
            stays = replace(stays, schema=replace(own, **told), truth=None)  # type: ignore[arg-type]
        return cls(stays, answer, policy.recommend(answer))

    @property
    def n_abstained(self) -> int:
        """Decisions at which no action has enough support."""
        return int(self.answer.abstained.sum())

    @property
    def agreement(self) -> float | None:
        """Share of decisions at which the logged action is recommended; None without a log."""
        if not self.stays.logged:
            return None
        return float((self.advised == self.stays.logged_action).mean())

    def table(self) -> pa.Table:
        """One row a decision, in decision order: stay, step, actions, probabilities.

        Actions that have names are told by them, and by their numbers in two columns more. Where
        they are classes of doses, each dose has the limits and the median of the recommended class;
        the highest class has no upper limit.
        """
        stays, stay = self.stays, self.stays.decisions().stay
        logged = stays.logged_action if stays.logged else None
        columns = {
            "stay": pa.array(stays.stay[stay]),
            "step": pa.array(_step_labels(stays)),
            "logged_action": _told(stays.schema, logged, len(stay)),
            "recommended_action": _told(stays.schema, self.advised, len(stay)),
        }
        if stays.schema.actions:
            unknown = pa.nulls(len(stay), pa.int64())
            columns["logged_number"] = unknown if logged is None else pa.array(logged)
            columns["recommended_number"] = pa.array(self.advised)
        columns |= _doses(stays.schema, self.advised)
        chances = zip(chance_names(stays.schema), self.answer.probabilities.T, strict=True)
        columns |= {name: pa.array(np.ascontiguousarray(column)) for name, column in chances}
        columns["abstained"] = pa.array(self.answer.abstained)
        return pa.table(columns)

    def shares(self) -> list[tuple[str, float | None]]:
        """Each action that is recommended anywhere, at length, and at which share of decisions.

        The most frequent come first; None is the share of an action that tells of a few people.
        """
        schema, k = self.stays.schema, self.stays.n_actions
        counts = np.bincount(self.advised, minlength=k)
        pairs = np.unique(np.stack([self.advised, self.stays.cluster]), axis=1)
        hidden = hide_together(np.bincount(pairs[0], minlength=k), counts)
        order = [int(a) for a in np.argsort(-counts, kind="stable") if counts[a] > 0]
        total = max(counts.sum(), 1)
        return [(describe(schema, a), None if hidden[a] else counts[a] / total) for a in order]


def describe(schema: Schema, number: int) -> str:
    """An action at length: classes of doses with their medians, anything else by its name."""
    doses = () if schema.recipe is None else schema.recipe.doses
    if not doses:
        return schema.action_name(number)
    own = [part.of_action[number] for part in schema.components]
    return ", ".join(
        f"{dose.name} {dose.descriptions[k]}" for dose, k in zip(doses, own, strict=True)
    )


def chance_names(schema: Schema) -> list[str]:
    """Columns of the probabilities: `p_` and the action's name, or its number where it has none."""
    names = schema.actions
    plain = not names or len(set(names)) < len(names)
    return [f"p_{number if plain else names[number]}" for number in range(schema.n_actions)]


def _told(schema: Schema, actions: Ints | None, n: int) -> pa.Array:
    """Actions by name where they have one."""
    if not schema.actions:
        return pa.nulls(n, pa.int64()) if actions is None else pa.array(actions)
    if actions is None:
        return pa.nulls(n, pa.string())
    return pa.array(schema.actions, pa.string()).take(pa.array(actions))


def _doses(schema: Schema, actions: Ints) -> dict[str, pa.Array]:
    """Limits and median of the class of each dose, by the name of the dose."""
    doses = () if schema.recipe is None else schema.recipe.doses
    names = [dose.name for dose in doses]
    if len(set(names)) < len(names):
        names = [dose.column for dose in doses]
    columns = {}
    for name, dose, part in zip(names, doses, schema.components if doses else (), strict=True):
        own = np.array(part.of_action)[actions]
        columns[f"{name}_low"] = _floats([low for low, _ in dose.ranges], own)
        columns[f"{name}_high"] = _floats([high for _, high in dose.ranges], own)
        # Of the class of none it is 0.
        medians = [0.0, *dose.medians[1:]] if dose.none else list(dose.medians)
        columns[f"{name}_median"] = _floats(medians, own)
    return columns


def _floats(values: list[float | None] | list[float], rows: Ints) -> pa.Array:
    return pa.array(values, pa.float64()).take(pa.array(rows))


def _step_labels(stays: Trajectories) -> NDArray[np.generic]:
    """The decision's own step label; past the end one more than the last, if it is a number."""
    stay, step = stays.decisions()
    rows = stays.decision_rows
    past = step == np.diff(stays.offsets)[stay]
    labels = stays.step[np.where(past, rows - 1, rows)].copy()
    if np.issubdtype(labels.dtype, np.number):
        labels[past] += 1
    return labels
