"""The exhibits of an evaluation, put together: aggregates that no longer hold a person."""

import platform
from collections.abc import Mapping, Sequence

import numpy as np
import torch

from etips.data.decisions import Floats
from etips.data.trajectories import Trajectories
from etips.disclosure import hide_steps, is_small
from etips.errors import SettingError
from etips.evaluation.abstention import AbstentionPoint, abstention_curve
from etips.evaluation.diagnostics import diagnose
from etips.evaluation.log import Log, View, view
from etips.evaluation.verdict import judge
from etips.files.fingerprint import fingerprint
from etips.files.json_documents import finite, plain
from etips.learn.fitting.candidates import Candidate
from etips.policies.deployed import Deployed, as_deployed
from etips.results import overlap
from etips.results.attrition import count_missing, trace_flow
from etips.results.exhibits import Absent, AbstentionRow, Exhibits, Record
from etips.results.subgrouping import subgroups
from etips.results.translation_path import shown_path, summarize_path
from etips.version import __version__


def make_exhibits(
    data: Trajectories,
    log: Log,
    policies: Mapping[str, Floats | Deployed],
    *,
    headline: str,
    paths: Mapping[str, Sequence[Candidate]] = {},
    settings: Mapping[str, object] = {},
    cohort: Record | None = None,
    propensities: Floats | None = None,
    unbalanced: Log | None = None,
) -> Exhibits:
    """Everything a report shows beyond estimates.

    Args:
        data: The evaluated stays.
        log: Their decisions.
        policies: By name what each policy does, or the probabilities that it draws from, shape
            (n_decisions, n_actions).
        headline: The policy that overlap, balance and subgroups are about.
        paths: For each policy that has one, its candidates.
        settings: What the study was run with, seeds among it; JSON-ready.
        cohort: `funnel.json` of the cohort the data came from.
        propensities: Fitted probabilities of all actions, to be looked at where `log` knows those
            of the logged actions alone, shape (n_decisions, n_actions).
        unbalanced: The log with propensities as fitted, where `log` has balanced ones.
    """
    if headline not in policies:
        raise SettingError("headline", "must be one of the policies")
    policy = view(log, *as_deployed(policies[headline]).judged)
    stated = log.propensities if log.propensities is not None else propensities
    return Exhibits(
        headline=headline,
        policies=tuple(policies),
        actions=overlap.compare_actions(data, log, policy, stated),
        calibration=overlap.calibrate(
            log, stated, fitted=log.propensities is None, names=data.schema.actions
        ),
        weights=overlap.bin_weights(log, policy),
        balance=overlap.compare_features(data, log, policy, unbalanced),
        subgroups=subgroups(data, log, policy),
        abstention=_abstention(log, policy),
        paths={name: shown_path(summarize_path(path)) for name, path in paths.items() if path},
        flow=trace_flow(data, cohort),
        missingness=count_missing(data, cohort),
        settings={name: plain(value) for name, value in settings.items()},
        seeds=_seeds(settings) | _simulation(data),
        versions=versions(),
        fingerprint=fingerprint(data=data),
    )


def versions() -> dict[str, str]:
    """Of what computed the numbers."""
    return {
        "etips": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": str(torch.__version__),
        "system": platform.system(),
    }


def _abstention(log: Log, policy: View) -> tuple[AbstentionRow, ...] | Absent:
    if log.propensities is None:
        return Absent("the propensities of actions not taken are not known")
    if np.isin(log.loss, (0, 1)).all() and is_small([(log.loss == k).sum() for k in (0, 1)]).any():
        # Where the policy never speaks the risk is the mean loss, and that a count of events.
        return Absent("one of the outcomes is too rare to be shown")
    points = abstention_curve(log, policy)
    left = [point.n_abstained for point in points]
    hidden = hide_steps(left, known=(0, log.n_decisions))
    return tuple(
        _abstention_row(log, policy, point)
        for point, unseen in zip(points, hidden, strict=True)
        if not unseen
    )


def _abstention_row(log: Log, policy: View, point: AbstentionPoint) -> AbstentionRow:
    assert log.propensities is not None
    speaks = log.propensities[log.rows, policy.recommended] >= point.support
    mixed = np.where(speaks[:, None], policy.probabilities, log.propensities)
    return AbstentionRow(
        support=float(point.support),
        coverage=float(point.coverage),
        risk=finite(point.risk.risk),
        low=finite(point.risk.low),
        high=finite(point.risk.high),
        verdict=judge(diagnose(log, view(log, mixed))).label,
    )


def _seeds(settings: Record) -> dict[str, object]:
    """Every seed among the settings, however deep."""
    seeds: dict[str, object] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            seeds |= {f"{name}, {inner}": seed for inner, seed in _seeds(value).items()}
        elif "seed" in name:
            seeds[name] = plain(value)
    return seeds


def _simulation(data: Trajectories) -> dict[str, object]:
    seed = data.schema.provenance.get("seed")
    return {} if seed is None else {"simulation": seed}
