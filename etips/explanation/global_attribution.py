"""Which columns a policy goes by on the whole, how sure that is, and how it changes over seeds.

At each of some decisions the likeliest action is held against the next. What speaks for it at one
step and against it at another counts twice, and does not cancel: sizes are added up, not values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.stats import spearmanr

from etips.data.decisions import Floats, Ints
from etips.data.trajectories import Trajectories
from etips.disclosure import LEAST_PEOPLE
from etips.errors import DataError
from etips.explanation.attribution import attribute_inputs, described, incompleteness
from etips.explanation.feature_names import columns_of, organ_systems
from etips.explanation.preference import Preference
from etips.models.bundle import Bundle
from etips.policies.policy import FittedPolicy

FIRST = 10
"""Columns that are looked at when explanations are compared."""

_MOST = 400  # decisions that are looked at, of as many stays as there are
_ALONE = 120  # of them for each network alone, and for models of several kinds as one


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
        unit: What means are in.
        by: What was attributed and how.
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
    """How far explanations of the same method under several seeds agree.

    Args:
        n_policies: How many were compared.
        first_in_common: Mean share of the first ten columns that two of them have in common.
        rank_correlation: Mean rank correlation of all columns' strengths.
    """

    n_policies: int
    first_in_common: float
    rank_correlation: float


def attribute_overall(
    policy: FittedPolicy, data: Trajectories, *, most: int = _MOST, seed: int = 0
) -> GlobalAttribution:
    """Which columns a policy goes by at the decisions of stays of eleven people or more.

    At most `most` decisions are looked at; a larger log is drawn from, stay by stay.
    """
    if len(np.unique(data.units)) < LEAST_PEOPLE:
        rule = f"must be of {LEAST_PEOPLE} people or more"
        raise DataError("data", rule, fix="Ask about one stay: stay=... (--stay ID).")
    preference = Preference(policy)
    some, chosen = _draw(data, min(most, _ALONE) if preference.is_mixed else most, seed)
    sizes, off = _sizes(preference, some, chosen)
    names = _names(policy)
    person = some.cluster[chosen]
    mean = sizes.mean(axis=0)
    part = np.zeros((int(person.max()) + 1, len(names)))
    np.add.at(part, person, sizes - mean)
    spread = 1.96 * np.sqrt((part**2).sum(axis=0)) / len(sizes)
    share = mean / max(float(mean.sum()), 1e-300)
    strengths = {
        name: ColumnStrength(name, *(float(v) for v in (m, max(m - s, 0.0), m + s, f)))
        for name, m, s, f in zip(names, mean, spread, share, strict=True)
    }
    return GlobalAttribution(
        columns=tuple(sorted(strengths.values(), key=lambda own: -own.mean)),
        groups={
            system: sum(strengths[name].share for name in own)
            for system, own in organ_systems(names).items()
        },
        unit=preference.unit,
        by=described(preference),
        networks_agree=_networks_agree(policy, some, chosen[:_ALONE]),
        completeness_error=off,
    )


def compare_seeds(
    policies: Sequence[FittedPolicy], data: Trajectories, *, most: int = _MOST, seed: int = 0
) -> SeedAgreement:
    """How far policies agree on which columns matter; two at least, at the same decisions."""
    if len(policies) < 2:
        raise DataError("policies", "must be two or more to be compared")
    each = [
        attribute_overall(policy, data, most=most, seed=seed).strengths() for policy in policies
    ]
    return agree(each)


def agree(strengths: Sequence[Mapping[str, float]]) -> SeedAgreement:
    """How far several explanations agree, by what each says of the same columns."""
    names = tuple(strengths[0])
    tables = [np.array([own[name] for name in names]) for own in strengths]
    pairs = list(combinations(tables, 2))
    common = [_in_common(*pair) for pair in pairs]
    ranks = [rank_correlation(*pair) for pair in pairs]
    return SeedAgreement(len(strengths), float(np.mean(common)), float(np.mean(ranks)))


def rank_correlation(one: Floats, other: Floats) -> float:
    """Spearman's; 0 where one of them does not vary."""
    if min(np.ptp(one), np.ptp(other)) == 0:
        return 0.0
    return float(spearmanr(one, other).statistic)


def _in_common(one: Floats, other: Floats) -> float:
    """Share of the first columns of one that are among the first of the other."""
    first = min(FIRST, len(one))
    tops = [set(np.argsort(-values, kind="stable")[:first].tolist()) for values in (one, other)]
    return len(tops[0] & tops[1]) / first


def _draw(data: Trajectories, most: int, seed: int) -> tuple[Trajectories, Ints]:
    """Some stays, and which of their decisions: one of each stay first, then another."""
    generator = np.random.default_rng(seed)
    stays = np.unique(data.decisions().stay)
    if len(stays) > most:
        data = data.subset(np.sort(generator.permutation(stays)[:most]))
    mixed = generator.permutation(data.n_decisions)
    stay = data.decisions().stay[mixed]
    order = np.argsort(stay, kind="stable")
    starts = np.searchsorted(stay[order], stay[order])
    turn = np.empty(len(stay), np.int64)
    turn[order] = np.arange(len(stay)) - starts
    return data, mixed[np.argsort(turn, kind="stable")][:most]


def _sizes(preference: Preference, data: Trajectories, chosen: Ints) -> tuple[Floats, float]:
    """Sizes by column of some decisions, shape (n, columns), and the largest incompleteness."""
    histories = preference.read(data).take(chosen)
    chances = preference.answer(histories).probabilities
    two = np.argsort(-chances, axis=1, kind="stable")[:, :2]
    values = attribute_inputs(preference, histories, two[:, 0], two[:, 1])
    columns, static = columns_of(preference.policy)
    by_step = np.abs(columns.total(values.steps)).sum(axis=1)
    every = np.concatenate([values.steps.reshape(len(two), -1), values.static], axis=1)
    worst = float(incompleteness(every, values.preference - values.reference).max(initial=0.0))
    return np.concatenate([by_step, np.abs(static.total(values.static))], axis=1), worst


def _names(policy: FittedPolicy) -> tuple[str, ...]:
    columns, static = columns_of(policy)
    return (*columns.names, *static.names)


def _networks_agree(policy: FittedPolicy, data: Trajectories, chosen: Ints) -> float | None:
    """How far the networks of one policy agree; each was trained by a seed of its own."""
    networks = policy.networks
    if not isinstance(networks, Bundle) or networks.n_members < 2:
        return None
    if not isinstance(policy.propensity, Bundle):
        return None
    names = _names(policy)
    each = []
    for member in range(networks.n_members):
        alone = Preference(replace(policy, networks=networks.select([member])))
        sizes, _ = _sizes(alone, data, chosen)
        each.append(dict(zip(names, sizes.mean(axis=0).tolist(), strict=True)))
    return agree(each).first_in_common
