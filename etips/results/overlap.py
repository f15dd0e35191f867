"""Where log and policy meet: actions, propensities, weights, balance of features."""

import re
from dataclasses import replace

import numpy as np

from etips.data.decisions import Floats, Ints
from etips.data.intake.components import Component
from etips.data.schema import Schema
from etips.data.trajectories import Trajectories
from etips.disclosure import LEAST_PEOPLE, hide_together, is_small
from etips.evaluation.calibration import ActionCalibration, calibration
from etips.evaluation.diagnostics import RARE, balance, overlap_by_action
from etips.evaluation.inference.checks import Bools, Clusters
from etips.evaluation.log import Log, View, view
from etips.files.json_documents import finite
from etips.results.calibration_exhibit import CalibratedAction, Calibration, CalibrationBin
from etips.results.exhibits import (
    Absent,
    Actions,
    Balance,
    DoseGrid,
    DoseLevels,
    FeatureBalance,
    WeightHistogram,
)

EDGES = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Bins of the weights; the last is open. Doubling, since a weight is a ratio."""

MOST_FEATURES = 20
IMBALANCE = 0.1  # a standardised difference above this is usually called imbalance
_DOSES = re.compile(r"(.+) (\d+), (.+) (\d+)")


def compare_actions(
    data: Trajectories, log: Log, policy: View, propensities: Floats | None
) -> Actions:
    """How often each action was taken, would be recommended, and could be judged.

    Args:
        data: For the names.
        log: The decisions.
        policy: The policy, seen through them.
        propensities: Of all actions, where known, shape (n, n_actions).
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
        n_logged=tuple(
            None if gone else int(count)
            for count, gone in zip(by_action.n_logged, unseen, strict=True)
        ),
        logged_share=_shown(by_action.logged_share, unseen),
        recommended_share=_shown(advised / n, silent),
        policy_share=_shown(by_action.policy_share, silent),
        supported_share=None if support is None else tuple(float(share) for share in support),
        effective_n=_shown(by_action.effective_n, unseen | is_small(by_action.effective_n)),
        doses=tuple(DoseLevels(own.name, own.descriptions) for own in doses_of(data.schema)),
    )


def doses_of(schema: Schema) -> tuple[Component, ...]:
    """The doses that actions are classes of, if they are."""
    return schema.components if schema.recipe is not None and schema.recipe.doses else ()


def grid_of(schema: Schema) -> DoseGrid | None:
    """Rows and columns of doses, if actions are pairs of their classes."""
    doses = doses_of(schema)
    if len(doses) != 2:
        return None if schema.components else _grid_by_name(schema.actions)
    row, column = doses
    sizes = len(row.levels), len(column.levels)
    return DoseGrid(*sizes, row.name, column.name, row.descriptions, column.descriptions)


def _grid_by_name(names: tuple[str, ...]) -> DoseGrid | None:
    """The same if the names are "fluid 0, vasopressor 0" and so on in order."""
    parts = [_DOSES.fullmatch(name) for name in names]
    doses = [part.groups() for part in parts if part is not None]
    if not doses or len(doses) != len(names):
        return None
    row, _, column, _ = doses[0]
    n_columns = 1 + max(int(level) for *_, level in doses)
    for number, (first, high, second, low) in enumerate(doses):
        if (first, second) != (row, column) or divmod(number, n_columns) != (int(high), int(low)):
            return None
    if len(names) % n_columns:
        return None
    return DoseGrid(len(names) // n_columns, n_columns, row, column)


def calibrate(
    log: Log, propensities: Floats | None, *, fitted: bool, names: tuple[str, ...] = ()
) -> Calibration | Absent:
    """Stated against observed propensity in ten bins, and how good the propensities are.

    Args:
        log: The decisions.
        propensities: Of all actions, shape (n, n_actions).
        fitted: Whether the estimates used known propensities instead.
        names: Of the actions.
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
    counts = (
        None if gone else int(count) for count, gone in zip(curve.n_pairs, hidden, strict=True)
    )
    return Calibration(
        used=not fitted,
        bins=tuple(CalibrationBin(*row) for row in zip(*columns, counts, strict=True)),
        error=float(curve.error),
        gap=float(curve.gap),
        accuracy=float((propensities.argmax(axis=1) == log.action).mean()),
        log_loss=float(-np.log(np.maximum(taken, 1e-12)).mean()),
        actions=_by_action(log, curve.by_action, names),
        frequency_log_loss=float(curve.frequency_log_loss),
    )


def _by_action(
    log: Log, actions: ActionCalibration, names: tuple[str, ...]
) -> tuple[CalibratedAction, ...]:
    """Stated and observed shares of the actions; none that counts a few people."""
    counts = np.bincount(log.action, minlength=log.n_actions)
    hidden = hide_together(_people(log.clusters, log.action, log.n_actions), counts)
    columns = (_shown(c, hidden) for c in (actions.stated, actions.observed, actions.std_error))
    called = names or tuple(f"action {number}" for number in range(log.n_actions))
    return tuple(CalibratedAction(*row) for row in zip(called, *columns, strict=True))


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


def compare_features(
    data: Trajectories, log: Log, policy: View, unbalanced: Log | None = None
) -> Balance | Absent:
    """Standardised differences of the features a decision could see, the largest twenty.

    Args:
        data: For the features.
        log: The decisions.
        policy: The policy, seen through them.
        unbalanced: The log with propensities as fitted, where `log` has balanced ones.
    """
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
    fitted = None
    if unbalanced is not None:
        seen = view(unbalanced, policy.probabilities, policy.abstains)
        fitted = balance(unbalanced, seen, table[:, keep])[1]
    largest = np.max(np.abs([before, after] if fitted is None else [before, after, fitted]), axis=0)
    order = np.argsort(-largest, kind="stable")[:MOST_FEATURES]
    return Balance(
        threshold=IMBALANCE,
        n_features=len(keep),
        n_above_before=int((np.abs(before) > IMBALANCE).sum()),
        n_above_after=int((np.abs(after) > IMBALANCE).sum()),
        features=tuple(
            FeatureBalance(
                names[keep[place]],
                finite(before[place]),
                finite(after[place]),
                None if fitted is None else finite(fitted[place]),
            )
            for place in order
        ),
        n_above_fitted=None if fitted is None else int((np.abs(fitted) > IMBALANCE).sum()),
    )


def _shown(values: Floats, hidden: Bools) -> tuple[float | None, ...]:
    """The values, None where hidden."""
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
