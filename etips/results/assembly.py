"""The exhibits of an evaluation: aggregates over people, no single one of whom is left in them."""

import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from etips.choice_record import ChoiceRecord
from etips.data.decisions import Bools, Floats, Ints
from etips.data.recipe import Component
from etips.data.schema import MISSING_SUFFIX, Schema
from etips.data.trajectories import Trajectories
from etips.disclosure import LEAST_PEOPLE, hide_steps, hide_together, is_small
from etips.errors import SettingError
from etips.evaluation.assessment import abstention_curve
from etips.evaluation.calibration import calibration
from etips.evaluation.diagnostics import RARE, balance, diagnose, overlap_by_action
from etips.evaluation.inference.checks import Clusters
from etips.evaluation.log import Log, View, view
from etips.evaluation.sensitivity import benchmark_features
from etips.evaluation.verdict import judge
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import plain
from etips.learn.fitting.candidates import Candidate
from etips.policies.deployed import Deployed, as_deployed
from etips.results.data_summary import count_missing, source_of, trace_flow
from etips.results.exhibits import (
    Absent,
    AbstentionRow,
    Actions,
    Balance,
    Calibration,
    CalibrationPoint,
    DoseGrid,
    DoseLevels,
    Exhibits,
    FeatureBalance,
    WeightHistogram,
)
from etips.results.groupings import subgroups
from etips.results.records import FeatureStrength, Record, existing
from etips.results.summaries import shown_path, summarize_path
from etips.version import __version__

EDGES = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Bins of the weights; the last is open. Doubling, since a weight is a ratio."""

MOST_FEATURES = 20
IMBALANCE = 0.1  # a standardised difference above this is usually called imbalance
MOST_COLUMNS = 150
"""More are pixels or the like: no reader could hold a hidden factor against one of them."""

_DOSES = re.compile(r"(.+) (\d+), (.+) (\d+)")


def make_exhibits(
    data: Trajectories,
    log: Log,
    policies: Mapping[str, Floats | Deployed],
    *,
    headline: str,
    paths: Mapping[str, Sequence[Candidate]] = {},
    choices: Mapping[str, ChoiceRecord | None] = {},
    settings: Mapping[str, object] = {},
    cohort: Record | None = None,
    propensities: Floats | None = None,
) -> Exhibits:
    """Everything a report shows beyond estimates.

    Args:
        policies: By name what each policy does, or the probabilities that it draws from, shape
            (n_decisions, n_actions).
        settings: What the study was run with, seeds among it; JSON-ready.
        propensities: Fitted probabilities of all actions, to be looked at where `log` knows those
            of the logged actions alone, shape (n_decisions, n_actions).
    """
    if headline not in policies:
        raise SettingError("headline", "must be one of the policies")
    policy = view(log, *as_deployed(policies[headline]).judged)
    stated = log.propensities if log.propensities is not None else propensities
    seed = data.schema.provenance.get("seed")
    exhibits = Exhibits(
        headline=headline,
        policies=tuple(policies),
        actions=compare_actions(data, log, policy, stated),
        calibration=calibrate(log, stated, fitted=log.propensities is None),
        weights=bin_weights(log, policy),
        balance=compare_features(data, log, policy),
        subgroups=subgroups(data, log, policy),
        abstention=_abstention(log, policy),
        paths={name: shown_path(summarize_path(path)) for name, path in paths.items() if path},
        flow=trace_flow(data, cohort),
        missingness=count_missing(data, cohort),
        settings={name: plain(value) for name, value in settings.items()},
        seeds=_seeds(settings) | ({} if seed is None else {"simulation": seed}),
        versions={
            "etips": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "torch": str(torch.__version__),
            "system": platform.system(),
        },
        fingerprint=fingerprint(data=data),
        choices={
            name: choice.disclosed
            for name, choice in choices.items()
            if choice and choice.is_judged
        },
    )
    return existing(exhibits)


def _abstention(log: Log, policy: View) -> tuple[AbstentionRow, ...] | Absent:
    if log.propensities is None:
        return Absent("the propensities of actions not taken are not known")
    if np.isin(log.loss, (0, 1)).all() and is_small([(log.loss == k).sum() for k in (0, 1)]).any():
        # Where the policy never speaks the risk is the mean loss, and that a count of events.
        return Absent("one of the outcomes is too rare to be shown")
    points = abstention_curve(log, policy)
    hidden = hide_steps([point.n_abstained for point in points], known=(0, log.n_decisions))
    rows = []
    for point in (point for point, unseen in zip(points, hidden, strict=True) if not unseen):
        speaks = log.propensities[log.rows, policy.recommended] >= point.support
        mixed = view(log, np.where(speaks[:, None], policy.probabilities, log.propensities))
        label, risk = judge(diagnose(log, mixed)).label, point.risk
        rows.append(
            AbstentionRow(point.support, point.coverage, risk.risk, risk.low, risk.high, label)
        )
    return tuple(rows)


def _seeds(settings: Record) -> dict[str, object]:
    """Every seed among the settings, however deep."""
    seeds: dict[str, object] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            seeds |= {f"{name}, {inner}": seed for inner, seed in _seeds(value).items()}
        elif "seed" in name:
            seeds[name] = plain(value)
    return seeds


def compare_actions(
    data: Trajectories, log: Log, policy: View, propensities: Floats | None
) -> Actions:
    """How often each action was taken, would be recommended, and could be judged.

    `propensities` are those of all actions, shape (n, n_actions), where known.
    """
    k, n = log.n_actions, log.n_decisions
    by_action = overlap_by_action(log, policy)
    advised = np.bincount(policy.recommended, minlength=k)
    unseen = hide_together(_people(log.clusters, log.action, k), by_action.n_logged)
    silent = hide_together(_people(log.clusters, policy.recommended, k), advised)
    support = None if propensities is None else (propensities >= RARE).mean(axis=0)
    return Actions(
        names=tuple(data.schema.actions) or tuple(f"action {number}" for number in range(k)),
        grid=grid_of(data.schema),
        n_logged=_shown(by_action.n_logged, unseen),
        logged_share=_shown(by_action.logged_share, unseen),
        recommended_share=_shown(advised / n, silent),
        policy_share=_shown(by_action.policy_share, silent),
        supported_share=None if support is None else tuple(float(share) for share in support),
        effective_n=_shown(by_action.effective_n, unseen | is_small(by_action.effective_n)),
        doses=tuple(DoseLevels(dose.name, dose.descriptions) for dose in doses_of(data.schema)),
    )


def doses_of(schema: Schema) -> tuple[Component, ...]:
    """The doses that actions are classes of, if they are."""
    return schema.components if schema.recipe is not None and schema.recipe.doses else ()


def grid_of(schema: Schema) -> DoseGrid | None:
    """Rows and columns of doses, if actions are pairs of their classes.

    Or if their names are "fluid 0, vasopressor 0" and so on in order.
    """
    doses = doses_of(schema)
    if len(doses) == 2:
        row, column = doses
        sizes = len(row.levels), len(column.levels)
        return DoseGrid(*sizes, row.name, column.name, row.descriptions, column.descriptions)
    parts = [_DOSES.fullmatch(name) for name in schema.actions]
    pairs = [part.groups() for part in parts if part is not None]
    if schema.components or not pairs or len(pairs) != len(parts):
        return None
    names, n_columns = (pairs[0][0], pairs[0][2]), 1 + max(int(level) for *_, level in pairs)
    for number, (first, high, second, low) in enumerate(pairs):
        if (first, second) != names or divmod(number, n_columns) != (int(high), int(low)):
            return None
    return None if len(pairs) % n_columns else DoseGrid(len(pairs) // n_columns, n_columns, *names)


def calibrate(log: Log, propensities: Floats | None, *, fitted: bool) -> Calibration | Absent:
    """Stated against observed propensity in ten bins, and how good the propensities are.

    Args:
        propensities: Of all actions, shape (n, n_actions).
        fitted: Whether the estimates used known propensities instead.
    """
    if propensities is None:
        return Absent("the propensities of actions not taken are not known")
    taken = propensities[log.rows, log.action]
    chance = np.maximum(taken, 1e-12)
    stated = replace(log, propensities=propensities, propensity=chance, propensity_floor=0.0)
    curve = calibration(stated)
    events = np.nan_to_num(curve.observed * curve.n_pairs).round().astype(np.int64)
    hidden = hide_together(curve.n_pairs, events)
    empty = hidden | (curve.n_pairs == 0)
    columns = (_shown(c, empty) for c in (curve.stated, curve.observed, curve.std_error))
    counts = _shown(curve.n_pairs, hidden)
    actions, k = curve.by_action, log.n_actions
    taken_by = np.bincount(log.action, minlength=k)
    unseen = hide_together(_people(log.clusters, log.action, k), taken_by)
    shares = (_shown(c, unseen) for c in (actions.stated, actions.observed, actions.std_error))
    return Calibration(
        used=not fitted,
        bins=tuple(CalibrationPoint(*row) for row in zip(*columns, counts, strict=True)),
        error=float(curve.error),
        gap=float(curve.gap),
        accuracy=float((propensities.argmax(axis=1) == log.action).mean()),
        log_loss=float(-np.log(np.maximum(taken, 1e-12)).mean()),
        actions=tuple(CalibrationPoint(*row) for row in zip(*shares, strict=True)),
        frequency_log_loss=float(curve.frequency_log_loss),
    )


def bin_weights(log: Log, policy: View) -> WeightHistogram:
    """Histogram of the weights: shares of decisions, and of the whole weight."""
    place = np.searchsorted(EDGES, policy.weight, side="right") - 1
    n_bins = len(EDGES)
    while n_bins > 1 and np.unique(log.clusters.code[place >= n_bins - 1]).size < LEAST_PEOPLE:
        n_bins -= 1  # the last bin is open, and holds enough people
    place = np.minimum(place, n_bins - 1)
    counts = np.bincount(place, minlength=n_bins)
    total = float(policy.weight.sum())
    carried = np.bincount(place, policy.weight, minlength=n_bins)
    hidden = hide_together(_people(log.clusters, place, n_bins), counts)
    return WeightHistogram(
        edges=EDGES[:n_bins],
        decisions=_shown(counts / log.n_decisions, hidden),
        weight=_shown(carried / (total or 1.0), hidden),
    )


def compare_features(data: Trajectories, log: Log, policy: View) -> Balance | Absent:
    """Standardised differences of the features a decision could see, the largest twenty."""
    names, table = visible_features(data)
    keep = [
        number for number in range(len(names)) if not _names_a_few(table[:, number], log.clusters)
    ]
    if not keep:
        return Absent("there is no feature to compare")
    matched = policy.recommended == log.action
    if is_small(np.unique(log.clusters.code[matched]).size):
        return Absent("too few people were treated as the policy advises")
    before, after = balance(log, policy, table[:, keep])
    largest = np.max(np.abs([before, after]), axis=0)
    order = np.argsort(-largest, kind="stable")[:MOST_FEATURES]
    return Balance(
        threshold=IMBALANCE,
        n_features=len(keep),
        n_above_before=int((np.abs(before) > IMBALANCE).sum()),
        n_above_after=int((np.abs(after) > IMBALANCE).sum()),
        features=tuple(
            FeatureBalance(names[keep[place]], before[place], after[place]) for place in order
        ),
    )


def _shown(values: Floats | Ints, hidden: Bools) -> tuple[Any, ...]:
    """The values as Python's numbers, None where hidden."""
    pairs = zip(values.tolist(), hidden, strict=True)
    return tuple(None if unseen else value for value, unseen in pairs)


def _people(clusters: Clusters, place: Ints, n_places: int) -> Ints:
    """Different people in each place, shape (n_places,)."""
    pairs = np.unique(place.astype(np.int64) * clusters.size + clusters.code)
    return np.bincount(pairs // clusters.size, minlength=n_places)


def visible_features(data: Trajectories) -> tuple[list[str], Floats]:
    """What a decision could see last, and its stay's static features; gaps hold the mean."""
    newest = data.sequence[data.seen_rows]
    static = data.static[data.decisions().stay]
    table = np.hstack([newest, static]).astype(np.float64)
    missing = np.isnan(table)
    known = np.maximum((~missing).sum(axis=0), 1)
    mean = np.where(missing, 0.0, table).sum(axis=0) / known
    return [*data.schema.sequence, *data.schema.static], np.where(missing, mean, table)


def _names_a_few(column: Floats, clusters: Clusters) -> bool:
    """Whether a yes-or-no feature tells ten people or fewer from the rest."""
    levels = np.unique(column[:10_000])
    if levels.size > 2:
        return False
    place = (column == column.max()).astype(np.int64)
    return bool(is_small(_people(clusters, place, 2)).any())


def measure_features(data: Trajectories) -> tuple[FeatureStrength, ...]:
    """The strongest features that a decision could see, alone and together."""
    names = [*data.schema.sequence, *data.schema.static]
    if len(names) > MOST_COLUMNS:
        return ()
    _, table = visible_features(data)
    groups: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        groups.setdefault(source_of(name.removesuffix(MISSING_SUFFIX), data.schema), []).append(
            column
        )
    strengths = benchmark_features(table, groups, data.logged_action, data.n_actions)
    return tuple(
        FeatureStrength(strength.names, float(strength.gamma))
        for strength in strengths
        if np.isfinite(strength.gamma)
    )
