"""Sections on the policies: all that were tried, where they come from, how one was chosen."""

from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from etips.choice_record import ChoiceRecord
from etips.disclosure import FEW
from etips.report.drawings import Axis, Mark, Scale, bars, interval, rows
from etips.report.figures import Guides, plot
from etips.report.finding import what_it_does
from etips.report.section import Figure, Section
from etips.report.wording import MARKS, clean, number, percent, signed, span
from etips.results.conclusions import KINDS, Conclusion, conclude, doubt_of
from etips.results.records import TRANSLATED, MethodResult, PathCandidate
from etips.results.results import Results
from etips.results.study_result import Chart, Series, StudyResult

POOLED = ("truth",)
"""Charts of a study with all decisions together; they stand with the estimators."""

_PATHS = ("path-snips", "path-factor")  # charts that the section on the path draws itself
_SHIFTED = 8  # actions that are shown

MEASURES = (
    ("Verdict", "Whether the log can carry the number: reliable, doubtful or unusable."),
    (
        "Risk",
        "Mean loss after a decision, had the policy made it and all else been as logged, with its "
        "95\u00a0% interval. Drawn: of a policy that takes its likeliest action, if it drew one "
        "from its probabilities.",
    ),
    (
        "Better",
        "Shown with one false yes in twenty over all policies tried. Where stays have several "
        "decisions it asks for a gain over the whole stay too.",
    ),
    (
        "Weight",
        "How much likelier the policy is to do what was done than the clinicians were.",
    ),
    (
        "Matching factor",
        "Mean weight. It should be 1; far from it, the policy does what the log does not hold.",
    ),
    (
        "Effective sample size",
        "How many equally weighted decisions would carry as much evidence.",
    ),
)
"""Words of the table, in plain language."""


def _table(results: Results) -> dict[str, object]:
    rows = [_row(method, results) for method in results.methods]
    kinds = {conclude(method, results.data).kind for method in results.methods}
    explained = [
        (method.name, f"{method.sentence}{_in_the_paper(method)}")
        for method in results.methods
        if method.sentence
    ]
    return {
        "data": results.data,
        "with_truth": any(method.truth is not None for method in results.methods),
        "policies": rows,
        "legend": [(Conclusion(k, short), means) for k, short, means in KINDS if k in kinds],
        "words": [*explained, *MEASURES],
        "folded": is_by_fold(results),
    }


def _row(method: MethodResult, results: Results) -> dict[str, object]:
    """A policy in words; see the template for what stands where."""
    head = method.estimates[0] if method.estimates else None
    gain, data, drawn = method.gain, results.data, method.as_probabilities
    known = gain is not None and gain.difference is not None
    conclusion = conclude(method, data)
    factor = method.diagnostics.matching_factor if method.diagnostics else None
    return {
        "name": method.name,
        "does": what_it_does(results, method.name),
        "verdict": method.verdict or "none",
        "conclusion": conclusion,
        "doubt": doubt_of(method, data) if conclusion.kind == "partly" else None,
        "risk": number(head.risk if head else None),
        "limits": span(head.low, head.high) if head else "",
        "gain": signed(gain.difference if gain else None),
        "gain_limits": f"{signed(gain.low)} to {signed(gain.high)}" if gain and known else "",
        "factor": number(factor, 2),
        "size": _size(method, data.n_decisions),
        "drawn": f"drawn: {number(drawn.risk)} ({span(drawn.low, drawn.high)})" if drawn else "",
        "in_sample": method.in_sample,
        "truth": number(method.truth),
    }


def _size(method: MethodResult, n_decisions: int | None) -> str:
    size = method.diagnostics.effective_sample_size if method.diagnostics else None
    if method.diagnostics is not None and size is None:
        return FEW
    share = f" ({percent(size / n_decisions)})" if size is not None and n_decisions else ""
    return number(size, 0) + share


def _in_the_paper(method: MethodResult) -> str:
    """What the paper calls it, where that is another name."""

    def letters(text: str) -> str:
        return "".join(letter for letter in text.lower() if letter.isalpha())

    if method.label is None or letters(method.label).startswith(letters(method.name)):
        return ""
    return f" The paper calls it {method.label}."


POLICIES = Section("policies", "The policies", "policy_table.html", _table)


def _shift(results: Results) -> dict[str, object] | None:
    """How these data differ from those that the policy learned from."""
    shift = results.shift
    if shift is None:
        return None
    moved = sorted(shift.actions, key=lambda own: -abs((own.here or 0.0) - (own.there or 0.0)))
    return {"shift": shift, "actions": moved[:_SHIFTED], "n_actions": len(shift.actions)}


SHIFT = Section("shift", "From where it was learned to here", "population_shift.html", _shift)


def is_by_fold(results: Results) -> bool:
    """Whether the study is about figures that only folds have: how often a policy was right."""
    tables = results.tables if isinstance(results, StudyResult) else ()
    return bool(tables) and "accuracy" in tables[0].columns


def _folds(results: Results) -> Mapping[str, object] | None:
    """A study's own tables and charts, and how they go with the figures above."""
    if not isinstance(results, StudyResult):
        return None
    drawn = results.exhibits is not None and bool(results.exhibits.paths)
    elsewhere = (*POOLED, *(_PATHS if drawn else ()))
    charts = [chart for chart in results.charts if chart.name not in elsewhere]
    if not results.tables and not charts:
        return None
    return {
        "tables": results.tables,
        "charts": [(chart, plot(chart)) for chart in charts],
        "marks": MARKS,
        "open": is_by_fold(results),
        "reconciled": _reconcile(results),
    }


def _reconcile(results: StudyResult) -> str:
    """Why the figures here are not those above, with both for the policy the page is about."""
    if is_by_fold(results):
        words = (
            "Here every fold's policy is judged on its own and the folds are averaged, as the "
            "paper does; ± is the spread between folds. The table above takes the policies of a "
            "method as one that follows one of them at random."
        )
    else:
        words = (
            "Above, the decisions of all folds are judged together, which gives the interval and "
            "the verdict. Here every fold is judged on its own and the folds are averaged, as the "
            "paper does; ± is the spread between folds, not an interval."
        )
    head = results.headline
    if head is None or results.study is None:
        return words
    folds = [own.snips for own in results.study.folds.get(head.name, ()) if own.snips is not None]
    together = next((e.risk for e in head.estimates if e.estimator == "snips"), None)
    if not folds or together is None:
        return words
    return (
        f"{words} For {clean(head.name)} the risk by SNIPS is {number(together)} with all "
        f"decisions together and {number(sum(folds) / len(folds))} as the mean of {len(folds)} "
        f"folds (verdict: {head.verdict})."
    )


FOLDS = Section("folds", "Fold by fold", "study_folds.html", _folds)


def _choices(results: Results) -> dict[str, object] | None:
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


CHOICES = Section(
    "choice", "What was tried, what was kept, and why", "policy_choice.html", _choices
)


def _paths(results: Results) -> dict[str, object] | None:
    """Every candidate, how it was judged, which one was kept."""
    exhibits = results.exhibits
    if exhibits is None or not exhibits.paths:
        return None
    paths = sorted(exhibits.paths.items(), key=lambda own: own[0] != exhibits.headline)
    return {"paths": [_drawn(name, path, results.data.mean_loss) for name, path in paths]}


def _drawn(name: str, path: Sequence[PathCandidate], mean_loss: float | None) -> dict[str, object]:
    """The candidates of one policy; drawings only where there is more than one to draw."""
    chosen = next((own for own in path if own.chosen), None)
    trained = [own for own in path if own.form == TRANSLATED and own.translation is not None]
    figures: list[Figure] = []
    if len(trained) > 1:
        clinicians = None if mean_loss is None else (mean_loss, "clinicians")
        expected = (1.0, "1: as many as expected")
        errors = tuple(own.std_error and 1.96 * own.std_error for own in trained)
        figures = [
            _path(trained, "Held-out risk (SNIPS)", lambda own: own.risk, clinicians, errors),
            _path(trained, "Matching factor", lambda own: own.matching_factor, expected),
            _path(trained, "Effective sample size", lambda own: own.effective_size),
        ]
    return {
        "name": name,
        "figures": figures,
        "rows": path,
        "chosen": chosen,
        "n_candidates": len(path),
    }


def _path(
    trained: Sequence[PathCandidate],
    title: str,
    height: Callable[[PathCandidate], float | None],
    across: tuple[float, str] | None = None,
    errors: tuple[float | None, ...] | None = None,
) -> Figure:
    translations = tuple(own.translation for own in trained)
    points = Series(title, translations, tuple(height(own) for own in trained), errors)
    guides = Guides(
        across=across,
        hollow=[place for place, own in enumerate(trained) if not own.sound],
        chosen=next((place for place, own in enumerate(trained) if own.chosen), None),
    )
    return title, plot(Chart("", "lines", title, None, "translation", title, (points,)), guides)


PATHS = Section("path", "The translation path", "candidate_path.html", _paths)
