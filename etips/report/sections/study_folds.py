"""Fold by fold: a study's own tables and charts, and how they go with the figures above."""

from collections.abc import Mapping

from etips.report import wording
from etips.report.plots import plot
from etips.report.section import Section
from etips.report.wording import clean, number
from etips.results.results import Results
from etips.results.study_result import StudyResult

POOLED = ("truth",)
"""Charts of all decisions together; they stand with the estimators."""

PATHS = ("path-snips", "path-factor")
"""Charts that the section on the translation path draws itself."""


def is_by_fold(results: Results) -> bool:
    """Whether the study is about figures that only folds have: how often a policy was right."""
    tables = results.tables if isinstance(results, StudyResult) else ()
    return bool(tables) and "accuracy" in tables[0].columns


def _make(results: Results) -> Mapping[str, object] | None:
    if not isinstance(results, StudyResult):
        return None
    drawn = results.exhibits is not None and bool(results.exhibits.paths)
    elsewhere = (*POOLED, *(PATHS if drawn else ()))
    charts = [chart for chart in results.charts if chart.name not in elsewhere]
    if not results.tables and not charts:
        return None
    return {
        "tables": results.tables,
        "charts": [(chart, plot(chart)) for chart in charts],
        "marks": wording.MARKS,
        "open": is_by_fold(results),
        "reconciled": _reconcile(results),
    }


SECTION = Section("folds", "Fold by fold", "study_folds.html", _make)


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
    return words + _both(results)


def _both(results: StudyResult) -> str:
    head = results.headline
    if head is None or results.study is None:
        return ""
    folds = [own.snips for own in results.study.folds.get(head.name, ()) if own.snips is not None]
    together = next((e.risk for e in head.estimates if e.estimator == "snips"), None)
    if not folds or together is None:
        return ""
    return (
        f" For {clean(head.name)} the risk by SNIPS is {number(together)} with all decisions "
        f"together and {number(sum(folds) / len(folds))} as the mean of {len(folds)} folds "
        f"(verdict: {head.verdict})."
    )
