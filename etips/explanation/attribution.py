"""What speaks for an action and against it: at one decision, and over all of a log.

Networks are attributed by integrated gradients (through Captum): from the average patient to this
one in a straight line, the gradients along it times the way. What the features get adds up to the
difference between the two, and that is checked for every answer. Everything else, trees and models
of several kinds that answer as one, gets Shapley values by columns of the table: a column is the
patient's at every step and in every summary of it, or the average patient's. What that adds stands
at the last visible step.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import spearmanr

from etips.data.decisions import Bools, Floats, Ints
from etips.data.trajectories import Trajectories
from etips.disclosure import LEAST_PEOPLE
from etips.errors import DataError, SettingError
from etips.explanation.feature_names import columns_of, organ_systems, summary_places
from etips.explanation.preference import Histories, Preference
from etips.models.bundle import Bundle
from etips.models.row_model import Reads
from etips.policies.policy import FittedPolicy

TOLERANCE = 0.01
"""How far the sum of the attributions may be off, as a share of what it should be."""

FIRST = 10
"""Columns that are looked at when explanations are compared."""

_POINTS = (24, 96, 384, 1536)  # on the way from the average patient; more where the sum is off
_AT_ONCE = 64  # decisions
_MAX_INPUTS = 4096  # histories that networks read at once
_CANCELLED = 0.05  # sums below this share of the sizes are what is left after cancelling
_ORDERS, _ORDERS_OF_MANY = 16, 4  # of columns, for one decision and where many are averaged
_NEGLIGIBLE = 1e-9  # a difference of preferences that is none
_MAX_DECISIONS = 400  # of a log that are looked at, of as many stays as there are
_MAX_ALONE = 120  # of them for each network alone, and for models of several kinds as one


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
        names = (*self.columns, *self.static_columns)
        sums = [*self.values.sum(axis=0).tolist(), *self.static_values.tolist()]
        pairs = zip(names, sums, strict=True)
        return dict(sorted(pairs, key=lambda item: -abs(item[1])))

    def by_group(self) -> dict[str, float]:
        """Sum over the columns of each organ system, in the order of `groups`."""
        sums = self.by_column()
        return {name: sum(sums[column] for column in own) for name, own in self.groups.items()}

    def to_json(self) -> dict[str, object]:
        """JSON-ready."""
        return vars(self) | {
            "completeness_error": self.completeness_error,
            "steps": [str(label) for label in self.steps],
            "values": self.values.tolist(),
            "static_values": self.static_values.tolist(),
            "by_group": self.by_group(),
        }


@dataclass(frozen=True, eq=False)
class FeatureValues:
    """Attributions of several decisions, by input of the networks.

    Args:
        steps: Shape (n, longest, n_features); 0 past the end of a history.
        static: Shape (n, n_static).
        preference: Shape (n,).
        reference: Of the average patient, shape (n,).
    """

    steps: Floats
    static: Floats
    preference: Floats
    reference: Floats


@dataclass(frozen=True)
class ColumnStrength:
    """How much a column moves a policy: mean size of what it adds, with 95 % limits by person.

    `share` is that of the sizes of all columns.
    """

    name: str
    mean: float
    low: float
    high: float
    share: float


@dataclass(frozen=True, eq=False)
class GlobalAttribution:
    """Which columns a policy goes by on the whole.

    Args:
        columns: The strongest first.
        groups: Share of each organ system, where the cohort knows them.
        networks_agree: Mean share of the first ten columns that two of its networks have in common;
            None where it has one, or trees.
        completeness_error: The largest, of all decisions that were looked at.
    """

    columns: tuple[ColumnStrength, ...]
    groups: Mapping[str, float]
    unit: str
    by: str
    networks_agree: float | None
    completeness_error: float

    def strengths(self) -> dict[str, float]:
        """Mean size by column."""
        return {own.name: own.mean for own in self.columns}


@dataclass(frozen=True)
class SeedAgreement:
    """How far explanations of the same method under several seeds agree, mean over pairs.

    Args:
        n_policies: How many were compared.
        first_in_common: Share of the first ten columns that two of them have in common.
        rank_correlation: Of all columns' strengths.
    """

    n_policies: int
    first_in_common: float
    rank_correlation: float


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
        by=preference.described(),
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
    static = np.zeros((n, histories.static.shape[1]))
    values = FeatureValues(np.zeros((n, longest, width)), static, np.zeros(n), np.zeros(n))
    pair = torch.from_numpy(action), torch.from_numpy(against)
    if preference.is_mixed:
        _add_shapley(preference, histories, pair, values)
        return values
    order = np.argsort(histories.last.numpy(), kind="stable")
    for start in range(0, n, _AT_ONCE):
        _add_gradients(preference, histories, pair, values, order[start : start + _AT_ONCE])
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


def _add_gradients(
    preference: Preference,
    histories: Histories,
    pair: tuple[torch.Tensor, torch.Tensor],
    values: FeatureValues,
    rows: Ints,
) -> None:
    """Integrated gradients of some decisions, with more points where the sum is off."""
    step, static = preference.reference()
    left = rows
    for points in _POINTS:
        some = histories.take(left)
        two = [own[torch.from_numpy(left)] for own in pair]
        average = replace(
            some, steps=step.expand_as(some.steps), static=static.expand_as(some.static)
        )
        with torch.no_grad():
            here, there = (preference.between(own, *two).numpy() for own in (some, average))
        by_step, always = _integrate(preference, some, average, two, points)
        values.preference[left], values.reference[left] = here, there
        values.steps[left, : by_step.shape[1]], values.static[left] = by_step, always
        every = np.concatenate([by_step.reshape(len(left), -1), always], axis=1)
        left = left[incompleteness(every, here - there) > TOLERANCE / 2]
        if not left.size:
            break


def _integrate(
    preference: Preference,
    some: Histories,
    average: Histories,
    pair: list[torch.Tensor],
    points: int,
) -> tuple[Floats, Floats]:
    """Captum's integrated gradients of steps and static features."""
    try:
        from captum.attr import IntegratedGradients  # noqa: PLC0415  # optional
    except ImportError:
        fix = "Install it with: pip install 'etips[explain]'."
        raise SettingError("explaining networks", "needs captum", fix=fix) from None
    n = 1 + bool(some.static.shape[1])  # Captum has no gradient of what is empty

    def ask(steps: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
        static = more[0] if n == 2 else steps.new_zeros(len(steps), 0)
        *_, last, action, against = more
        own = replace(some, steps=steps, static=static, last=last)
        return preference.between(own, action, against)

    # Where all would be too many at once; Captum wants one point of each at least.
    size = len(some.steps)
    batch = None if size * points <= _MAX_INPUTS else max(_MAX_INPUTS, size)
    by_step, *always = IntegratedGradients(ask).attribute(
        (some.steps, some.static)[:n],
        (average.steps, average.static)[:n],
        additional_forward_args=(some.last, *pair),
        n_steps=points,
        internal_batch_size=batch,
    )
    static = always[0].detach().numpy() if always else np.zeros((size, 0))
    return by_step.detach().numpy(), static


def _add_shapley(
    preference: Preference,
    histories: Histories,
    pair: tuple[torch.Tensor, torch.Tensor],
    values: FeatureValues,
) -> None:
    """Sampled Shapley values of the columns of the table, of all models as one."""
    schema, (step, static) = preference.policy.schema, preference.reference()
    by_step, fixed = columns_of(preference.policy)
    n_columns, n = len(by_step.names) + len(fixed.names), len(histories.last)
    column = np.concatenate([by_step.of_feature, fixed.of_feature + len(by_step.names)])
    of_row: dict[Reads, Ints] = {}  # the column of the table behind each of a row
    for reads in ("last", *histories.summaries):
        feature, constant = summary_places(schema, reads)
        of_row[reads] = column[np.where(constant >= 0, len(step) + constant, feature)]
    average = preference.reference_row()
    first = np.unique(column, return_index=True)[1]

    for row in range(n):
        one, two = histories.take(np.array([row])), [own[row] for own in pair]

        def prefer(taken: Bools, one: Histories = one, two: list[torch.Tensor] = two) -> Floats:
            inputs = torch.from_numpy(taken[:, column])
            asked = Histories(
                torch.where(inputs[:, None, : len(step)], one.steps, step),
                torch.where(inputs[:, len(step) :], one.static, static),
                one.last.expand(len(taken)),
                np.where(taken[:, of_row["last"]], one.rows, average),
                {
                    reads: np.where(taken[:, of_row[reads]], table, one.average[reads])
                    for reads, table in one.summaries.items()
                },
            )
            with torch.no_grad():
                said = preference.between(asked, *(own.expand(len(taken)) for own in two))
            return said.numpy()

        shares = np.zeros(len(column))
        orders = _ORDERS if n == 1 else _ORDERS_OF_MANY
        shares[first] = shapley_values(prefer, n_columns, orders=orders)
        values.steps[row, int(one.last[0])] = shares[: len(step)]
        values.static[row] = shares[len(step) :]
        there, here = prefer(np.repeat([[False], [True]], n_columns, axis=1))
        values.preference[row], values.reference[row] = here, there


def shapley_values(
    ask: Callable[[Bools], Floats], n: int, *, seed: int = 0, orders: int = _ORDERS
) -> Floats:
    """Shapley values of n columns, by sampled orders, shape (n,).

    Columns are exchanged one after another from the average patient's to the patient's; what each
    changes is its share in that order. Shares of an order add up to the whole difference, so their
    mean does. Every order is also walked backwards, which halves the noise.

    Args:
        ask: What is explained: a number for each of some sets of columns, shape (sets, n), that are
            the patient's.
        n: How many columns.
        seed: Of the orders.
        orders: How many, an even number.
    """
    generator = np.random.default_rng(seed)
    drawn = np.array([generator.permutation(n) for _ in range(orders // 2)])
    both = np.stack([drawn, drawn[:, ::-1]], axis=1).reshape(-1, n)
    rank = np.argsort(both, axis=1)  # place of each column in an order
    taken = rank[:, None, :] < np.arange(n + 1)[:, None]  # (orders, n + 1, n)
    change = np.diff(ask(taken.reshape(-1, n)).reshape(len(both), n + 1), axis=1)
    return np.asarray(np.take_along_axis(change, rank, axis=1).mean(axis=0))


def attribute_overall(
    policy: FittedPolicy, data: Trajectories, *, most: int = _MAX_DECISIONS, seed: int = 0
) -> GlobalAttribution:
    """Which columns a policy goes by at the decisions of stays of eleven people or more.

    At each of some decisions the likeliest action is held against the next. What speaks for it at
    one step and against it at another counts twice, and does not cancel: sizes are added up. At
    most `most` decisions are looked at; a larger log is drawn from, stay by stay.
    """
    if len(np.unique(data.units)) < LEAST_PEOPLE:
        rule = f"must be of {LEAST_PEOPLE} people or more"
        raise DataError("data", rule, fix="Ask about one stay: stay=... (--stay ID).")
    preference = Preference(policy)
    some, chosen = _draw(data, min(most, _MAX_ALONE) if preference.is_mixed else most, seed)
    columns, static = columns_of(policy)
    names = (*columns.names, *static.names)
    sizes, error = _sizes(preference, some, chosen)
    person = some.cluster[chosen]
    mean = sizes.mean(axis=0)
    part = np.zeros((int(person.max()) + 1, len(names)))
    np.add.at(part, person, sizes - mean)
    spread = 1.96 * np.sqrt((part**2).sum(axis=0)) / len(sizes)
    share = mean / max(float(mean.sum()), 1e-300)
    figures = np.stack([mean, np.maximum(mean - spread, 0.0), mean + spread, share], axis=1)
    strengths = {
        name: ColumnStrength(name, *own) for name, own in zip(names, figures.tolist(), strict=True)
    }
    return GlobalAttribution(
        columns=tuple(sorted(strengths.values(), key=lambda own: -own.mean)),
        groups={
            system: sum(strengths[name].share for name in own)
            for system, own in organ_systems(names).items()
        },
        unit=preference.unit,
        by=preference.described(),
        networks_agree=_networks_agree(policy, some, chosen[:_MAX_ALONE]),
        completeness_error=error,
    )


def agree(strengths: Sequence[Mapping[str, float]]) -> SeedAgreement:
    """How far two explanations or more agree, by the strengths that each gives the same columns."""
    tables = [np.array([own[name] for name in strengths[0]]) for own in strengths]
    first = min(FIRST, len(tables[0]))
    common, ranks = [], []
    for one, other in combinations(tables, 2):
        tops = [set(np.argsort(-own, kind="stable")[:first].tolist()) for own in (one, other)]
        common.append(len(tops[0] & tops[1]) / first)
        ranks.append(rank_correlation(one, other))
    return SeedAgreement(len(strengths), float(np.mean(common)), float(np.mean(ranks)))


def rank_correlation(one: Floats, other: Floats) -> float:
    """Spearman's; 0 where one of them does not vary."""
    if min(np.ptp(one), np.ptp(other)) == 0:
        return 0.0
    return float(spearmanr(one, other).statistic)


def _draw(data: Trajectories, most: int, seed: int) -> tuple[Trajectories, Ints]:
    """Some stays, and which of their decisions: one of each stay first, then another."""
    generator = np.random.default_rng(seed)
    stays = np.unique(data.decisions().stay)
    if len(stays) > most:
        data = data.subset(np.sort(generator.permutation(stays)[:most]))
    mixed = generator.permutation(data.n_decisions)
    stay = data.decisions().stay[mixed]
    order = np.argsort(stay, kind="stable")
    turn = np.empty(len(stay), np.int64)
    turn[order] = np.arange(len(stay)) - np.searchsorted(stay[order], stay[order])
    return data, mixed[np.argsort(turn, kind="stable")][:most]


def _sizes(preference: Preference, data: Trajectories, chosen: Ints) -> tuple[Floats, float]:
    """Sizes by column of some decisions, shape (n, columns), and the largest incompleteness."""
    histories = preference.read(data).take(chosen)
    values = attribute_inputs(preference, histories, *preference.two_likeliest(histories))
    columns, static = columns_of(preference.policy)
    by_step = np.abs(columns.total(values.steps)).sum(axis=1)
    every = np.concatenate([values.steps.reshape(len(chosen), -1), values.static], axis=1)
    worst = float(incompleteness(every, values.preference - values.reference).max(initial=0.0))
    return np.concatenate([by_step, np.abs(static.total(values.static))], axis=1), worst


def _networks_agree(policy: FittedPolicy, data: Trajectories, chosen: Ints) -> float | None:
    """How far the networks of one policy agree; each was trained by a seed of its own."""
    networks = policy.networks
    if not isinstance(networks, Bundle) or networks.n_members < 2:
        return None
    if not isinstance(policy.propensity, Bundle):
        return None
    strengths = []
    for member in range(networks.n_members):
        alone = Preference(replace(policy, networks=networks.select([member])))
        sizes = _sizes(alone, data, chosen)[0].mean(axis=0)
        strengths.append({str(column): size for column, size in enumerate(sizes.tolist())})
    return agree(strengths).first_in_common
