"""Sections on the policies: all that were tried, where they come from, how one was chosen."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from markupsafe import Markup

from etips.choice_record import ChoiceRecord
from etips.disclosure import FEW
from etips.report.drawings import Axis, Mark, Scale, bars, interval, rows
from etips.report.figures import Guides, plot
from etips.report.finding import what_it_does
from etips.report.section import Figure
from etips.report.wording import MARKS, clean, number, percent, signed
from etips.results.conclusions import KINDS, Conclusion, conclude, doubt_of
from etips.results.records import TRANSLATED, MethodResult, PathCandidate
from etips.results.results import Results
from etips.results.study_result import Chart, Series, StudyResult

POOLED = ("truth",)
"""Charts of a study with all decisions together; they stand with the estimators."""

_PATHS = ("path-snips", "path-factor")  # charts that the section on the path draws itself
_SHIFTED = 8  # actions that are shown


def table(results: Results) -> dict[str, object]:
    """Every policy that was tried, a row each."""
    rows, words, data = [], [], results.data
    conclusions = [conclude(method, data) for method in results.methods]
    for method, conclusion in zip(results.methods, conclusions, strict=True):
        doubt = doubt_of(method, data) if conclusion.kind == "partly" else None
        does = what_it_does(results, method.name)
        rows.append((method, conclusion, does, doubt, _size(method, data.n_decisions)))
        if method.sentence:
            words.append((method.name, f"{method.sentence}{_in_the_paper(method)}"))
    kinds = {conclusion.kind for conclusion in conclusions}
    return {
        "data": data,
        "with_truth": any(method.truth is not None for method in results.methods),
        "policies": rows,
        "legend": [(Conclusion(k, short), means) for k, short, means in KINDS if k in kinds],
        "words": words,
        "folded": is_by_fold(results),
    }


def _size(method: MethodResult, n_decisions: int | None) -> str:
    size = method.diagnostics.effective_sample_size if method.diagnostics else None
    if method.diagnostics is not None and size is None:
        return FEW
    share = f" ({percent(size / n_decisions)})" if size is not None and n_decisions else ""
    return number(size, 0) + share


def _in_the_paper(method: MethodResult) -> str:
    """What the paper calls it, where that is another name."""
    ours, theirs = (
        "".join(letter for letter in (text or "").lower() if letter.isalpha())
        for text in (method.name, method.label)
    )
    if method.label is None or theirs.startswith(ours):
        return ""
    return f" The paper calls it {method.label}."


def shift(results: Results) -> dict[str, object] | None:
    """How these data differ from those that the policy learned from."""
    own = results.shift
    if own is None:
        return None
    moved = sorted(own.actions, key=lambda one: -abs((one.here or 0.0) - (one.there or 0.0)))
    return {"shift": own, "actions": moved[:_SHIFTED], "n_actions": len(own.actions)}


def is_by_fold(results: Results) -> bool:
    """Whether the study is about figures that only folds have: how often a policy was right."""
    tables = results.tables if isinstance(results, StudyResult) else ()
    return bool(tables) and "accuracy" in tables[0].columns


def folds(results: Results) -> dict[str, object] | None:
    """A study's own tables and charts, and how they go with the figures above."""
    if not isinstance(results, StudyResult):
        return None
    drawn = results.exhibits is not None and bool(results.exhibits.paths)
    elsewhere = (*POOLED, *(_PATHS if drawn else ()))
    charts = [chart for chart in results.charts if chart.name not in elsewhere]
    if not results.tables and not charts:
        return None
    head, by_fold, together = results.headline, [], None
    if head is not None and results.study is not None:
        own = results.study.folds.get(head.name, ())
        by_fold = [fold.snips for fold in own if fold.snips is not None]
        together = next((e.risk for e in head.estimates if e.estimator == "snips"), None)
    return {
        "tables": results.tables,
        "charts": [(chart, plot(chart)) for chart in charts],
        "marks": MARKS,
        "open": is_by_fold(results),
        "main": head,
        "together": together,
        "by_fold": by_fold,
    }


def choices(results: Results) -> dict[str, object] | None:
    """What super learners tried and kept."""
    exhibits = results.exhibits
    if exhibits is None or not exhibits.choices:
        return None
    chosen = sorted(exhibits.choices.items(), key=lambda own: own[0] != exhibits.headline)
    return {"choices": [(name, own, *_choice_figures(own)) for name, own in chosen]}


def _choice_figures(record: ChoiceRecord) -> tuple[Markup, Markup]:
    """How each candidate was judged, and what the stack is made of."""
    drawn = []
    for own in record.tried:
        kept, alone = own.kept and own.tier != "model", own.tier == "model"
        label = clean(own.label, 26) + (" ◆" if kept else "")
        figures, colour = (own.gap, *own.interval), "c1" if alone else "c0"
        drawn.append(interval(label, figures, signed(own.gap, 4), strong=kept, colour=colour))
    scale = Scale.around([0.0, *(end for own in record.tried for end in own.interval)])
    axis = Axis(scale, "lower is better", [Mark("guide", 0.0)])
    legend = [("bar c1", "a model, as it would do alone"), ("bar c0", "a policy")]
    judged = rows(drawn, axis, "Held-out risk of each candidate less the clinicians'", legend)
    models = [own for own in record.tried if own.weight is not None]
    series = Series("weight", tuple(own.name for own in models), tuple(m.weight for m in models))
    chart = Chart("", "bars", "Weights", None, "model", "weight", (series,))
    return judged, bars(chart, "Share of each model in the stack", shares=True)


def paths(results: Results) -> dict[str, object] | None:
    """Every candidate, how it was judged, which one was kept."""
    exhibits = results.exhibits
    if exhibits is None or not exhibits.paths:
        return None
    ordered = sorted(exhibits.paths.items(), key=lambda own: own[0] != exhibits.headline)
    shown = []
    for name, path in ordered:
        chosen = next((own for own in path if own.chosen), None)
        shown.append((name, path, chosen, _path_figures(path, results.data.mean_loss)))
    return {"paths": shown}


def _path_figures(path: Sequence[PathCandidate], mean_loss: float | None) -> list[Figure]:
    """Drawings of the candidates of one policy, where there is more than one to draw."""
    trained = [own for own in path if own.form == TRANSLATED and own.translation is not None]
    if len(trained) < 2:
        return []
    marked = Guides(
        hollow=[place for place, own in enumerate(trained) if not own.sound],
        chosen=next((place for place, own in enumerate(trained) if own.chosen), None),
    )
    translations = tuple(own.translation for own in trained)

    def figure(
        title: str,
        height: Callable[[PathCandidate], float | None],
        across: tuple[float, str] | None = None,
        errors: tuple[float | None, ...] | None = None,
    ) -> Figure:
        points = Series(title, translations, tuple(height(own) for own in trained), errors)
        chart = Chart("", "lines", title, None, "translation", title, (points,))
        return title, plot(chart, replace(marked, across=across))

    clinicians = None if mean_loss is None else (mean_loss, "clinicians")
    errors = tuple(own.std_error and 1.96 * own.std_error for own in trained)
    expected = (1.0, "1: as many as expected")
    return [
        figure("Held-out risk (SNIPS)", lambda own: own.risk, clinicians, errors),
        figure("Matching factor", lambda own: own.matching_factor, expected),
        figure("Effective sample size", lambda own: own.effective_size),
    ]
