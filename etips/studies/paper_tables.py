"""The paper's two tables and what belongs to them as data: ours, with the published beside."""

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from etips.learn.fitting.candidates import Candidate
from etips.learn.learners.catalogue import find_method
from etips.results.data_summary import summarize_data
from etips.results.records import TRANSLATED
from etips.results.study_result import Table
from etips.results.summaries import summarize_path
from etips.studies.findings import EXTERNAL_COLUMNS, Findings, show_stay
from etips.studies.measures import mean_of, over_folds, show_groups
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
    published = TABLE1[findings.experiment.world]
    rows = [
        [
            method,
            over_folds(own, attrgetter("accuracy")).show(),
            str(published.get(method, TABLE1_ABOUT.get(method, "-"))),
            *(over_folds(own, attrgetter(name)).show() for name in _ESTIMATES),
            show_groups(own),
        ]
        for method, own in findings.measures.items()
    ]
    columns = ["method", "accuracy", "paper", *_ESTIMATES.values(), "matched / others"]
    return _table(findings, findings.experiment.title, columns, rows, _note1(findings))


def table2(findings: Findings) -> Table:
    """ATENP and estimated risks on held-out stays; the true risks last, where they are known."""
    beside = findings.data.schema.provenance.get("cohort") == MIMIC  # whose figures are printed
    known = findings.data.truth is not None
    verdicts = {m.name: str(m.verdict) for m in findings.assessed}
    stays, looked = {m.name: show_stay(m) for m in findings.assessed}, _looked_throughout(findings)
    rows = []
    for method, own in findings.measures.items():
        figures = TABLE2.get(method, {}) if beside else {}
        row = [method]
        for name in _COLUMNS2:
            row.append(over_folds(own, attrgetter(name)).show())
            row += [str(figures.get(name, "-"))] if beside and name != "snips" else []
        row += [show_groups(own), verdicts[method]]
        row += [stays[method]] if looked else []
        row += [] if findings.external is None else findings.external.cells(method)
        if known:
            row += [over_folds(own, attrgetter(name)).show(4) for name in ("risk", "drawn_risk")]
        rows.append(row)
    columns = ["policy"]
    for name, title in _COLUMNS2.items():
        columns += [title, "paper"] if beside and name != "snips" else [title]
    columns += ["matched / others", "verdict"]
    columns += ["change over a whole stay"] if looked else []
    columns += [] if findings.external is None else EXTERNAL_COLUMNS
    columns += ["true risk", "true risk, drawn"] if known else []
    note = _note2(findings) + ("" if findings.external is None else findings.external.note)
    return _table(findings, findings.experiment.title, columns, rows, note)


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
        if max(len(path) for path in paths) < 2:
            continue
        rows.append((method, *(_chosen(path) for path in paths)))
    if not rows:
        return []
    columns = ("method", *(f"fold {fold + 1}" for fold in range(findings.experiment.folds)))
    note = f"Candidates were compared {findings.judged_on}."
    return [Table("Translation chosen in each fold", note, columns, tuple(rows))]


def learned_from(findings: Findings) -> Table:
    """How each method did on what it learned from, and how much that was.

    A policy that flees the log gives itself away there: on what it learned from it knows which
    action was logged, elsewhere it can only guess.
    """
    unit = "samples" if findings.experiment.table == "table1" else "stays"
    rows = []
    for method in findings.measures:
        fits = findings.fits[method]
        log_loss = [fit.quality.log_loss for fit in fits if fit.quality]
        factors = [c.matching_factor for path in findings.path(method) for c in path if c.chosen]
        figures = (
            f"{mean_of(log_loss):.4f}" if log_loss else "-",
            f"{mean_of(factors):.3f}" if factors else "-",
        )
        if figures != ("-", "-"):
            rows.append((method, *figures))
    return Table(
        title="How each method did on what it learned from",
        note=f"{_sizes(findings, unit)} Means over folds. Log-loss: of the fitted propensities, on "
        "what was held out within the part learned from (of the true labels, for full "
        "supervision). Matching factor there: of the chosen candidates, compared "
        f"{findings.judged_on}. Methods that have neither are left out.",
        columns=("method", "log-loss of propensities", "matching factor there"),
        rows=tuple(rows),
    )


def _sizes(findings: Findings, unit: str) -> str:
    """How much a fold learns from, and how much it is judged on; alike for all methods."""
    fits = next(iter(findings.fits.values()))
    learned, held = (  # nobody can subtract what is about right
        round(mean_of(sizes), -1)
        for sizes in ([f.n_learned_from for f in fits], [f.n_held_out for f in fits])
    )
    return f"A fold may learn from about {learned:,.0f} {unit} and is judged on about {held:,.0f}."


def _looked_throughout(findings: Findings) -> bool:
    """Whether any policy was looked at as it decides throughout."""
    return any(method.whole_stay is not None for method in findings.assessed)


def _table(
    findings: Findings, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str
) -> Table:
    quick = ", quick" if findings.experiment.quick else ""
    title = f"{title} (preset {findings.experiment.preset}{quick})"
    return Table(title, note, tuple(columns), tuple(tuple(row) for row in rows))


def _note1(findings: Findings) -> str:
    n, folds = findings.data.n_stays, findings.experiment.folds
    drawn = {"sampled": "drawn from", "argmax": "the likeliest ones of"}[
        findings.experiment.logging
    ]
    return (
        f"Mean ± standard deviation over {folds} folds, all judged on the same {n:,} test samples. "
        f"Logged actions are {drawn} the logging policy. {findings.expected_factor} A lower risk "
        f"is better. Paper: accuracy as published.{_other_names(findings)}"
    )


def _note2(findings: Findings) -> str:
    folds, data = findings.experiment.folds, findings.data
    loss = summarize_data(data).mean_loss  # hidden where it would tell how many had the event
    logged = "" if loss is None else f"Mean logged loss {loss:.4f}. "
    text = (
        f"Mean ± standard deviation over {folds} folds, each stay held out once. "
        f"{logged}The verdict is of all folds taken "
        f"together. Propensities {findings.notes['propensities']}, raised to "
        f"at least {findings.notes['clip']}.{_other_names(findings)}"
    )
    if _looked_throughout(findings):
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
    methods = [method for name in findings.measures if (method := find_method(name)) is not None]
    other = [m for m in methods if not _letters(m.label).startswith(_letters(m.name))]
    return "".join(f" {own.name} is called {own.label} in the paper." for own in other)


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalpha())


def _chosen(path: Sequence[Candidate]) -> str:
    """The candidate that a fold kept: a translation, or in words what has none."""
    for candidate, shown in zip(path, summarize_path(path), strict=True):
        if candidate.chosen:
            has_none = math.isnan(candidate.translation) or candidate.form != TRANSLATED
            return shown.called if has_none else f"{candidate.translation:g}"
    return "-"
