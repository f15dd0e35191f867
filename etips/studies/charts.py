"""The figures of a study as data: which points, lines and bars, with what beside the axes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from etips.evaluation.estimators import BESIDE
from etips.files.json_documents import finite
from etips.studies.experiment import label_of
from etips.studies.findings import Findings
from etips.studies.measures import over_folds

Chart = dict[str, Any]


def make_charts(found: Findings) -> list[Chart]:
    """All figures of a study."""
    if found.experiment.table == "table1":
        own = [
            label_distribution(found),
            _against(found, "atenp", "ATENP", "accuracy-atenp"),
            _against(found, "ips", "IPS risk", "accuracy-ips"),
            _against(found, "dr", "DR risk", "accuracy-dr"),
        ]
    else:
        own = [atenp_bars(found), *([truth(found)] if found.data.truth is not None else [])]
    return [*own, *translation_paths(found)]


def label_distribution(found: Findings) -> Chart:
    """How often the logging policy takes each action, beside how often it is the right one."""
    k, data = found.data.n_actions, found.data
    names = [str(action) for action in range(k)]
    right = data.true_expected_loss().argmin(axis=1)
    return {
        "name": "labels",
        "kind": "bars",
        "title": "Actions of the logging policy",
        "caption": "Share of each action in the log of the test part, beside the share of samples "
        "whose label it is. A direct method trained on this log sees mostly the frequent actions.",
        "x": "action",
        "y": "share",
        "series": [
            _series("logged", names, np.bincount(data.logged_action, minlength=k) / len(right)),
            _series("true label", names, np.bincount(right, minlength=k) / len(right)),
        ],
    }


def _against(found: Findings, name: str, title: str, chart: str) -> Chart:
    """Accuracy of every method and fold against what the log alone says."""
    return {
        "name": chart,
        "kind": "scatter",
        "title": f"Accuracy against {title}",
        "caption": f"One point a method and fold. {title} is what the log shows; accuracy needs "
        "the labels that a log does not have. Points from top left to bottom right mean that the "
        "log ranks the policies as the labels do.",
        "x": title,
        "y": "accuracy",
        "series": [
            _series(label_of(m), [getattr(f, name) for f in own], [f.accuracy for f in own])
            for m, own in found.measures.items()
        ],
    }


def atenp_bars(found: Findings) -> Chart:
    """ATENP of every policy as the table has it, over folds."""
    spreads = {m: over_folds(own, "atenp") for m, own in found.measures.items()}
    return {
        "name": "atenp",
        "kind": "bars",
        "title": "ATENP of each policy",
        "caption": "Mean loss of decisions that agree with the policy minus that of the others; "
        "below zero is good. Mean over folds. A description: those who were treated so differ from "
        "the others.",
        "x": "policy",
        "y": "ATENP",
        "series": [
            _series(
                "ATENP",
                [label_of(method) for method in spreads],
                [spread.mean for spread in spreads.values()],
                [spread.deviation for spread in spreads.values()],
            )
        ],
    }


def truth(found: Findings) -> Chart:
    """Each estimator's word against the true risk of the same policy."""
    points: dict[str, tuple[list[float], list[float], list[float]]] = {
        name: ([], [], []) for name in BESIDE
    }
    for method in found.assessed:
        for estimate in method.assessment.estimates:
            if estimate.estimator in points and method.truth is not None:
                x, y, error = points[estimate.estimator]
                x.append(method.truth)
                y.append(estimate.risk)
                error.append(estimate.std_error)
    return {
        "name": "truth",
        "kind": "scatter",
        "title": "Estimated against true risk",
        "caption": "One point a policy and estimator, with its standard error. An estimator that "
        "tells the truth lies where both axes agree.",
        "x": "true risk",
        "y": "estimated risk",
        "series": [_series(name.upper(), *values) for name, values in points.items()],
    }


def translation_paths(found: Findings) -> list[Chart]:
    """SNIPS and matching factor along the translations, mean and standard deviation over folds."""
    paths = {method: _by_translation(found.path(method)) for method in found.measures}
    paths = {method: path for method, path in paths.items() if len(path) > 1}
    if not paths:
        return []
    return [
        {
            "name": name,
            "kind": "lines",
            "title": f"{title} along the translation path",
            "caption": f"{title} of the candidate trained with each translation. Candidates were "
            f"compared {found.judged_on}. {meaning} Bars: standard deviation over folds.",
            "x": "translation",
            "y": title,
            "series": [
                _series(
                    label_of(method),
                    list(path),
                    [_mean(c[key] for c in own) for own in path.values()],
                    [_deviation(c[key] for c in own) for own in path.values()],
                )
                for method, path in paths.items()
            ],
        }
        for name, key, title, meaning in (
            ("path-snips", "risk", "SNIPS", "Lower is better."),
            ("path-factor", "matching_factor", "Matching factor", found.expected_factor),
        )
    ]


def _by_translation(
    paths: Sequence[Sequence[Mapping[str, Any]]],
) -> dict[float, list[Mapping[str, Any]]]:
    found: dict[float, list[Mapping[str, Any]]] = {}
    for path in paths:
        for candidate in path:
            if candidate["translation"] is not None:
                found.setdefault(candidate["translation"], []).append(candidate)
    return found


def _series(
    name: str, x: Iterable[Any], y: Iterable[float], error: Iterable[float] | None = None
) -> dict[str, Any]:
    """Points that have both coordinates; an error may be missing."""
    points = [*zip(x, y, repeat(math.nan) if error is None else error, strict=False)]
    known = [
        p
        for p in points
        if math.isfinite(p[1]) and (isinstance(p[0], str) or finite(p[0]) is not None)
    ]
    return {
        "name": name,
        "x": [p[0] if isinstance(p[0], str) else float(p[0]) for p in known],
        "y": [float(p[1]) for p in known],
        "error": None if error is None else [finite(p[2]) for p in known],
    }


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else math.nan


def _deviation(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.std(known, ddof=1)) if len(known) > 1 else math.nan
