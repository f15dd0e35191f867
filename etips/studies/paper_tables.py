"""The paper's two tables and the figures of a study as data: ours, with the published beside."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from etips.evaluation.estimators import BESIDE
from etips.files.json_documents import finite
from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.catalogue import find_method
from etips.results.data_summary import summarize_data
from etips.results.records import TRANSLATED, MethodResult
from etips.results.study_result import Chart, Series, Table
from etips.results.summaries import summarize_path
from etips.studies.findings import Findings, about, mean_of, over_folds, show_groups, spread
from etips.worlds.digits import labelled_rows, labelled_zeros

MIMIC = "Sepsis-3 from MIMIC-III"
"""What the provenance of a cohort says whose figures may stand beside the paper's."""


_ESTIMATES = {
    "matching_factor": "matching factor",
    "snips": "SNIPS",
    "ips": "IPS",
    "dr": "DR",
    "atenp": "ATENP",
}
_COLUMNS2 = {name: _ESTIMATES[name] for name in ("atenp", "ips", "snips", "dr", "matching_factor")}


class Figure(NamedTuple):
    """A published figure: mean of five folds, and what the paper prints behind +/-."""

    mean: float
    spread: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.spread:.4f}"


TABLE1: Mapping[str, Mapping[str, Figure]] = {
    "digits-zeros": {
        "direct": Figure(0.343, 0.0001),
        "random": Figure(0.363, 0.0001),
        "ips": Figure(0.301, 0.012),
        "tips": Figure(0.899, 0.0229),
        "eips": Figure(0.319, 0.0075),
        "etips": Figure(0.923, 0.0122),
    },
    "digits-rows": {
        "direct": Figure(0.098, 0.0022),
        "random": Figure(0.103, 0.0001),
        "ips": Figure(0.020, 0.0061),
        "tips": Figure(0.931, 0.0852),
        "eips": Figure(0.016, 0.0098),
        "etips": Figure(0.953, 0.0390),
    },
}
"""Table I, accuracy on the test part, by world and method."""

TABLE1_ABOUT: Mapping[str, str] = {
    "full-supervision": "about 0.95",
    "logging": "about 0.66",
}
"""Accuracies that the text around Table I gives, for both tasks."""

TABLE2: Mapping[str, Mapping[str, Figure]] = {
    "predictive": {
        "atenp": Figure(-0.019, 0.0021),
        "ips": Figure(0.523, 0.0229),
        "dr": Figure(0.523, 0.0021),
        "matching_factor": Figure(1.034, 0.0391),
    },
    "direct": {"atenp": Figure(0.032, 0.0001)},
    "most-frequent": {"atenp": Figure(-0.023, 0.0001)},
    "random": {
        "atenp": Figure(-0.023, 0.0001),
        "ips": Figure(0.125, 0.0001),
        "dr": Figure(0.478, 0.0026),
        "matching_factor": Figure(0.243, 0.0001),
    },
    "eips": {
        "atenp": Figure(-0.025, 0.1009),
        "ips": Figure(0.009, 0.0019),
        "dr": Figure(0.504, 0.0071),
        "matching_factor": Figure(0.018, 0.0029),
    },
    "etips": {
        "atenp": Figure(-0.143, 0.0099),
        "ips": Figure(0.169, 0.0160),
        "dr": Figure(0.471, 0.0060),
        "matching_factor": Figure(0.438, 0.0279),
    },
}
"""Table II, MIMIC-III, by method and column; the paper gives no more for deterministic policies."""


def make_tables(findings: Findings) -> list[Table]:
    """All tables of a study, the paper's first."""
    if findings.experiment.table == "table2":
        first = [table2(findings)]
    elif findings.experiment.preset == "authors":
        first = [table1(findings), regression_facts()]
    else:
        first = [table1(findings)]
    return [*first, *chosen_translations(findings), learned_from(findings)]


def table1(findings: Findings) -> Table:
    """Accuracy on the test part with the published figure beside it, then what a log can tell."""
    experiment = findings.experiment
    published = TABLE1[experiment.world]
    rows = [
        (
            method,
            over_folds(own, attrgetter("accuracy")).show(),
            str(published.get(method, TABLE1_ABOUT.get(method, "-"))),
            *(over_folds(own, attrgetter(name)).show() for name in _ESTIMATES),
            show_groups(own),
        )
        for method, own in findings.measures.items()
    ]
    columns = ("method", "accuracy", "paper", *_ESTIMATES.values(), "matched / others")
    drawn = {"sampled": "drawn from", "argmax": "the likeliest ones of"}[experiment.logging]
    note = (
        f"Mean ± standard deviation over {experiment.folds} folds, all judged on the same "
        f"{findings.data.n_stays:,} test samples. Logged actions are {drawn} the logging policy. "
        f"{findings.expected_factor} A lower risk is better. Paper: accuracy as published."
        f"{_other_names(findings)}"
    )
    return Table(_title(findings), note, columns, tuple(rows))


def table2(findings: Findings) -> Table:
    """ATENP and estimated risks on held-out stays; the true risks last, where they are known."""
    beside = findings.data.schema.provenance.get("cohort") == MIMIC  # whose figures are printed
    columns: dict[str, list[str]] = {"policy": list(findings.measures)}
    folds = findings.measures.values()
    assessed = [next(m for m in findings.assessed if m.name == own) for own in findings.measures]

    def add_figures(name: str, title: str, places: int = 3) -> None:
        columns[title] = [over_folds(own, attrgetter(name)).show(places) for own in folds]

    for name, title in _COLUMNS2.items():
        add_figures(name, title)
        if beside and name != "snips":
            paper = [TABLE2.get(method, {}).get(name, "-") for method in findings.measures]
            columns[f"paper {name}"] = list(map(str, paper))
    columns["matched / others"] = [show_groups(own) for own in folds]
    columns["verdict"] = [str(method.verdict) for method in assessed]
    if any(method.whole_stay is not None for method in assessed):
        columns["change over a whole stay"] = [show_stay(method) for method in assessed]
    note = _note2(findings)
    if findings.external is not None:
        own = [findings.external.assessed[method] for method in findings.measures]
        columns |= external_columns(own)
        note += (
            f" External: {about(findings.external.data)}; risk of one of the folds' policies "
            "drawn at random and its change against the clinicians there, with 95 % limits, by "
            "propensities fitted there and doses in the classes of the data above."
        )
    if findings.data.truth is not None:
        add_figures("risk", "true risk", 4)
        add_figures("drawn_risk", "true risk, drawn", 4)
    titles = ("paper" if title.startswith("paper ") else title for title in columns)
    return Table(_title(findings), note, tuple(titles), tuple(zip(*columns.values(), strict=True)))


def show_stay(method: MethodResult) -> str:
    """The change over a whole stay as a table prints it; a dash where it was not evaluated."""
    whole = method.whole_stay
    if whole is None or whole.gain.difference is None:
        return "-"
    gain = whole.gain
    limits = "" if gain.low is None or gain.high is None else f" [{gain.low:.3f}, {gain.high:.3f}]"
    return f"{gain.difference:+.3f}{limits}, {whole.verdict}"


def external_columns(assessed: Sequence[MethodResult]) -> dict[str, list[str]]:
    """What a table shows of the policies on another source."""

    def limits(value: float | None, low: float | None, high: float | None, sign: str = "") -> str:
        if value is None or low is None or high is None:
            return "-"
        return f"{value:{sign}.3f} [{low:{sign}.3f}, {high:{sign}.3f}]"

    heads = [method.estimates[0] for method in assessed]
    gains = [method.gain for method in assessed]
    return {
        "external risk": [limits(head.risk, head.low, head.high) for head in heads],
        "external change": [
            "-" if own is None else limits(own.difference, own.low, own.high, "+") for own in gains
        ],
        "external verdict": [str(method.verdict) for method in assessed],
    }


def regression_facts() -> Table:
    """Three accuracies of the published table that no training enters: labels and a seed do."""
    zeros, rows = labelled_zeros(n=1_000).logged_action, labelled_rows(n=7_000).logged_action
    drawn = [np.random.RandomState(0).randint(k, size=len(y)) for k, y in ((3, zeros), (10, rows))]
    zero, one = "digits-zeros", "digits-rows"
    facts = (
        ("zeros, direct: the answer 0 to every sequence", zeros == 0, TABLE1[zero]["direct"]),
        ("zeros, random: drawn with seed 0", zeros == drawn[0], TABLE1[zero]["random"]),
        ("rows, random: drawn with seed 0", rows == drawn[1], TABLE1[one]["random"]),
    )
    return Table(
        title="Figures of Table I that follow from labels and a seed alone",
        note="Computed from the labels of the full test parts, whatever the size of this run.",
        columns=("figure", "computed", "paper"),
        rows=tuple(
            (what, f"{right.mean():.3f}", f"{published.mean:.3f}")
            for what, right, published in facts
        ),
    )


def chosen_translations(findings: Findings) -> list[Table]:
    """Which translation each fold chose, for the methods that choose one."""
    rows = []
    for method in findings.measures:
        paths = findings.path(method)
        if max(len(path) for path in paths) >= 2:
            rows.append((method, *(_chosen(path) for path in paths)))
    if not rows:
        return []
    columns = ("method", *(f"fold {fold + 1}" for fold in range(findings.experiment.folds)))
    note = f"Candidates were compared {findings.judged_on}."
    return [Table("Translation chosen in each fold", note, columns, tuple(rows))]


def _chosen(path: Sequence[Candidate]) -> str:
    """The candidate that a fold kept: a translation, or in words what has none."""
    for candidate, shown in zip(path, summarize_path(path), strict=True):
        if candidate.chosen:
            has_none = math.isnan(candidate.translation) or candidate.form != TRANSLATED
            return shown.called if has_none else f"{candidate.translation:g}"
    return "-"


def learned_from(findings: Findings) -> Table:
    """How each method did on what it learned from, and how much that was.

    A policy that flees the log gives itself away there: on what it learned from it knows which
    action was logged, elsewhere it can only guess.
    """
    unit = "samples" if findings.experiment.table == "table1" else "stays"
    rows = []
    for method, fits in findings.fits.items():
        log_loss = mean_of(fit.quality.log_loss for fit in fits if fit.quality)
        chosen = (c.matching_factor for path in findings.path(method) for c in path if c.chosen)
        factor = mean_of(chosen)
        if not (math.isnan(log_loss) and math.isnan(factor)):
            shown = f"{log_loss:.4f}", f"{factor:.3f}"
            rows.append((method, *(text.replace("nan", "-") for text in shown)))
    fits = next(iter(findings.fits.values()))
    # Rounded: sizes that are about right cannot be subtracted.
    learned = round(mean_of(fit.n_learned_from for fit in fits), -1)
    held = round(mean_of(fit.n_held_out for fit in fits), -1)
    return Table(
        title="How each method did on what it learned from",
        note=f"A fold may learn from about {learned:,.0f} {unit} and is judged on about "
        f"{held:,.0f}. Means over folds. Log-loss: of the fitted propensities, on "
        "what was held out within the part learned from (of the true labels, for full "
        "supervision). Matching factor there: of the chosen candidates, compared "
        f"{findings.judged_on}. Methods that have neither are left out.",
        columns=("method", "log-loss of propensities", "matching factor there"),
        rows=tuple(rows),
    )


def _title(findings: Findings) -> str:
    quick = ", quick" if findings.experiment.quick else ""
    return f"{findings.experiment.title} (preset {findings.experiment.preset}{quick})"


def _note2(findings: Findings) -> str:
    data = findings.data
    loss = summarize_data(data).mean_loss  # hidden where it would tell how many had the event
    logged = "" if loss is None else f"Mean logged loss {loss:.4f}. "
    text = (
        f"Mean ± standard deviation over {findings.experiment.folds} folds, each stay held out "
        f"once. {logged}The verdict is of all folds taken together. Propensities "
        f"{findings.notes['propensities']}, raised to at least {findings.notes['clip']}."
        f"{_other_names(findings)}"
    )
    if any(method.whole_stay is not None for method in findings.assessed):
        text += (
            " All columns but one are about one changed decision, the rest as logged; the change "
            "over a whole stay is that of the mean sum of its losses, had the policy decided "
            "throughout."
        )
    if data.truth is None:
        return text
    clinicians = data.true_risk(data.true_logging())
    best = data.true_expected_loss().min(axis=1).mean()
    return (
        f"{text} True risk of the clinicians {clinicians:.4f}, best possible {best:.4f}; "
        "drawn: if actions were drawn from a policy's probabilities."
    )


def _other_names(findings: Findings) -> str:
    """Which policies have another name in the paper."""

    def letters(name: str) -> str:
        return "".join(letter for letter in name.lower() if letter.isalpha())

    methods = [method for name in findings.measures if (method := find_method(name)) is not None]
    other = [own for own in methods if not letters(own.label).startswith(letters(own.name))]
    return "".join(f" {own.name} is called {own.label} in the paper." for own in other)


def make_charts(findings: Findings) -> list[Chart]:
    """All figures of a study."""
    paths = translation_paths(findings)
    if findings.experiment.table == "table1":
        shown = {"atenp": "ATENP", "ips": "IPS risk", "dr": "DR risk"}
        against = [_against(findings, name, title) for name, title in shown.items()]
        return [label_distribution(findings), *against, *paths]
    known = findings.data.truth is not None
    return [atenp_bars(findings), *([truth(findings)] if known else []), *paths]


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
        lines = []
        for method, path in paths.items():
            spreads = [spread(map(attrgetter(field), own)) for own in path.values()]
            means, bars = ([getattr(s, part) for s in spreads] for part in ("mean", "deviation"))
            lines.append(_series(method, list(path), means, bars))
        caption = (
            f"{title} of the candidate trained with each translation. Candidates were compared "
            f"{findings.judged_on}. {meaning} Bars: standard deviation over folds."
        )
        heading = f"{title} along the translation path"
        charts.append(
            Chart(name, "lines", heading, caption, x="translation", y=title, series=tuple(lines))
        )
    return charts


def _by_translation(paths: Sequence[Sequence[Candidate]]) -> dict[float, list[Candidate]]:
    alike: dict[float, list[Candidate]] = {}
    for candidate in (candidate for path in paths for candidate in path):
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
