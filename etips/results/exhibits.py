"""What a report shows beyond the estimates, as numbers that no longer hold a person.

Everything here is an aggregate over at least eleven people, or null. A part that the data cannot
give is an object with the one key "absent", which says why; no part is ever left out.
"""

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
from etips.results import overlap
from etips.results import people as describe
from etips.results.subgrouping import subgroups
from etips.version import __version__

NOTICE = "For research, not for clinical use."


def make_exhibits(
    data: Trajectories,
    log: Log,
    policies: Mapping[str, Floats],
    *,
    headline: str,
    paths: Mapping[str, Sequence[Mapping[str, object]]] = {},
    settings: Mapping[str, object] = {},
    cohort: Mapping[str, object] | None = None,
    propensities: Floats | None = None,
) -> dict[str, object]:
    """Everything a report shows beyond estimates; see `results.schema.json` for the fields.

    Args:
        data: The evaluated stays.
        log: Their decisions.
        policies: Probabilities of each policy, shape (n_decisions, n_actions), by name.
        headline: The policy that overlap, balance and subgroups are about.
        paths: For each policy that has one, its candidates: `translation`, `action`, `risk`,
            `std_error`, `matching_factor`, `effective_size`, `chosen`.
        settings: What the study was run with, seeds among it; JSON-ready.
        cohort: `funnel.json` of the cohort the data came from.
        propensities: Fitted probabilities of all actions, to be looked at where `log` knows those
            of the logged actions alone, shape (n_decisions, n_actions).
    """
    if headline not in policies:
        raise SettingError("headline", "must be one of the policies")
    policy = view(log, policies[headline])
    stated = log.propensities if log.propensities is not None else propensities
    return {
        "headline": headline,
        "policies": list(policies),
        "actions": overlap.actions(data, log, policy, stated),
        "calibration": overlap.calibrate(log, stated, fitted=log.propensities is None),
        "weights": overlap.weights(log, policy),
        "balance": overlap.balances(data, log, policy),
        "subgroups": subgroups(data, log, policy),
        "abstention": _abstention(log, policy),
        "paths": {name: [_candidate(c) for c in path] for name, path in paths.items() if path},
        "flow": describe.flow(data, cohort),
        "missingness": describe.missingness(data, cohort),
        "settings": plain(settings),
        "seeds": _seeds(settings) | _simulation(data),
        "versions": versions(),
        "fingerprint": fingerprint(data=data),
        "notice": NOTICE,
    }


def versions() -> dict[str, str]:
    """Of what computed the numbers."""
    return {
        "etips": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": str(torch.__version__),
        "system": platform.system(),
    }


def _abstention(log: Log, policy: View) -> object:
    if log.propensities is None:
        return {"absent": "the propensities of actions not taken are not known"}
    if np.isin(log.loss, (0, 1)).all() and is_small([(log.loss == k).sum() for k in (0, 1)]).any():
        # Where the policy never speaks the risk is the mean loss, and that a count of events.
        return {"absent": "one of the outcomes is too rare to be shown"}
    points = abstention_curve(log, policy)
    left = [point.n_abstained for point in points]
    hidden = hide_steps(left, known=(0, log.n_decisions))
    return [
        _point(log, policy, point)
        for point, unseen in zip(points, hidden, strict=True)
        if not unseen
    ]


def _point(log: Log, policy: View, point: AbstentionPoint) -> dict[str, object]:
    assert log.propensities is not None
    speaks = log.propensities[log.rows, policy.recommended] >= point.support
    mixed = np.where(speaks[:, None], policy.probabilities, log.propensities)
    return {
        "support": point.support,
        "coverage": point.coverage,
        "risk": finite(point.risk.risk),
        "low": finite(point.risk.low),
        "high": finite(point.risk.high),
        "verdict": judge(diagnose(log, view(log, mixed))).label,
    }


def _candidate(found: Mapping[str, object]) -> dict[str, object]:
    wanted = ("translation", "action", "risk", "std_error", "matching_factor", "effective_size")
    values = {name: finite(found.get(name)) for name in wanted}
    action = found.get("action")
    return {**values, "action": action, "chosen": bool(found.get("chosen", False))}


def _seeds(settings: Mapping[str, object]) -> dict[str, object]:
    """Every seed among the settings, however deep."""
    found: dict[str, object] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            found |= {f"{name}, {inner}": seed for inner, seed in _seeds(value).items()}
        elif "seed" in name:
            found[name] = plain(value)
    return found


def _simulation(data: Trajectories) -> dict[str, object]:
    seed = data.schema.provenance.get("seed")
    return {} if seed is None else {"simulation": seed}
