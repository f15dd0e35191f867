"""The figures of a study as data: which points, lines and bars, with what beside the axes."""

import math
from collections.abc import Iterable, Sequence
from itertools import repeat
from operator import attrgetter

import numpy as np

from etips.evaluation.estimators import BESIDE
from etips.files.json_documents import finite
from etips.learn.fitting.candidates import Candidate
from etips.results.records import TRANSLATED
from etips.results.study_result import Chart, Series
from etips.studies.findings import Findings
from etips.studies.measures import deviation_of, mean_of, over_folds


def make_charts(findings: Findings) -> list[Chart]:
    """All figures of a study."""
    if findings.experiment.table == "table1":
        shown = {"atenp": "ATENP", "ips": "IPS risk", "dr": "DR risk"}
        own = [
            label_distribution(findings),
            *(_against(findings, name, title) for name, title in shown.items()),
        ]
    else:
        own = [
            atenp_bars(findings),
            *([truth(findings)] if findings.data.truth is not None else []),
        ]
    return [*own, *translation_paths(findings)]


def label_distribution(findings: Findings) -> Chart:
    """How often the logging policy takes each action, beside how often it is the right one."""
    k, data = findings.data.n_actions, findings.data
    names = [str(action) for action in range(k)]
    right = data.true_expected_loss().argmin(axis=1)
    return Chart(
        name="labels",
        kind="bars",
        title="Actions of the logging policy",
        caption="Share of each action in the log of the test part, beside the share of samples "
        "whose label it is. A direct method trained on this log sees mostly the frequent actions.",
        x="action",
        y="share",
        series=(
            _series("logged", names, np.bincount(data.logged_action, minlength=k) / len(right)),
            _series("true label", names, np.bincount(right, minlength=k) / len(right)),
        ),
    )


def _against(findings: Findings, name: str, title: str) -> Chart:
    """Accuracy of every method and fold against what the log alone says."""
    figure = attrgetter(name)
    return Chart(
        name=f"accuracy-{name}",
        kind="scatter",
        title=f"Accuracy against {title}",
        caption=f"One point a method and fold. {title} is what the log shows; accuracy needs "
        "the labels that a log does not have. Points from top left to bottom right mean that the "
        "log ranks the policies as the labels do.",
        x=title,
        y="accuracy",
        series=tuple(
            _series(method, [figure(f) for f in folds], [f.accuracy for f in folds])
            for method, folds in findings.measures.items()
        ),
    )


def atenp_bars(findings: Findings) -> Chart:
    """ATENP of every policy as the table has it, over folds."""
    spreads = {m: over_folds(own, lambda fold: fold.atenp) for m, own in findings.measures.items()}
    bars = _series(
        "ATENP",
        list(spreads),
        [spread.mean for spread in spreads.values()],
        [spread.deviation for spread in spreads.values()],
    )
    return Chart(
        name="atenp",
        kind="bars",
        title="ATENP of each policy",
        caption="Mean loss of decisions that agree with the policy minus that of the others; "
        "below zero is good. Mean over folds. A description: those who were treated so differ from "
        "the others.",
        x="policy",
        y="ATENP",
        series=(bars,),
    )


def truth(findings: Findings) -> Chart:
    """Each estimator's figure against the true risk of the same policy."""
    points = {
        name: [
            (method.truth, estimate.risk, estimate.std_error)
            for method in findings.assessed
            for estimate in method.estimates
            if estimate.estimator == name and method.truth is not None
        ]
        for name in BESIDE
    }
    return Chart(
        name="truth",
        kind="scatter",
        title="Estimated against true risk",
        caption="One point a policy and estimator, with its standard error. An estimator that "
        "tells the truth lies where both axes agree.",
        x="true risk",
        y="estimated risk",
        series=tuple(
            _series(name.upper(), *([point[axis] for point in own] for axis in range(3)))
            for name, own in points.items()
        ),
    )


def translation_paths(findings: Findings) -> list[Chart]:
    """SNIPS and matching factor along the translations, mean and standard deviation over folds."""
    paths = {method: _by_translation(findings.path(method)) for method in findings.measures}
    paths = {method: path for method, path in paths.items() if len(path) > 1}
    if not paths:
        return []
    charts = []
    for name, title, meaning, field in (
        ("path-snips", "SNIPS", "Lower is better.", "risk"),
        ("path-factor", "Matching factor", findings.expected_factor, "matching_factor"),
    ):
        figure = attrgetter(field)
        lines = tuple(
            _series(
                method,
                list(path),
                [mean_of(map(figure, own)) for own in path.values()],
                [deviation_of(map(figure, own)) for own in path.values()],
            )
            for method, path in paths.items()
        )
        caption = (
            f"{title} of the candidate trained with each translation. Candidates were compared "
            f"{findings.judged_on}. {meaning} Bars: standard deviation over folds."
        )
        heading = f"{title} along the translation path"
        charts.append(
            Chart(name, "lines", heading, caption, x="translation", y=title, series=lines)
        )
    return charts


def _by_translation(paths: Sequence[Sequence[Candidate]]) -> dict[float, list[Candidate]]:
    alike: dict[float, list[Candidate]] = {}
    for path in paths:
        for candidate in path:
            if candidate.form == TRANSLATED and not math.isnan(candidate.translation):
                alike.setdefault(candidate.translation, []).append(candidate)
    return alike


def _series(
    name: str,
    x: Sequence[str] | Sequence[float | None],
    y: Iterable[float | None],
    error: Iterable[float | None] | None = None,
) -> Series:
    """Points that have both coordinates; an error may be missing."""
    places = [value if isinstance(value, str) else finite(value) for value in x]
    points = zip(places, y, repeat(None) if error is None else error, strict=False)
    known = [p for p in points if p[0] is not None and finite(p[1]) is not None]
    return Series(
        name,
        x=tuple(p[0] for p in known),
        y=tuple(finite(p[1]) for p in known),
        error=None if error is None else tuple(finite(p[2]) for p in known),
    )
