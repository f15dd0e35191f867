"""How the evidence holds: all estimators side by side, in a simulation beside the truth."""

from etips.report.plots import plot
from etips.report.row_plots import intervals, risk_scale
from etips.report.section import Section
from etips.report.sections.study_folds import POOLED
from etips.results.results import Results
from etips.results.study_result import StudyResult


def _make(results: Results) -> dict[str, object] | None:
    mean_loss, methods = results.data.mean_loss, results.methods
    if not any(method.estimates for method in methods):
        return None
    scale = risk_scale(methods, mean_loss)
    charts = results.charts if isinstance(results, StudyResult) else ()
    pooled = [chart for chart in charts if chart.name in POOLED]
    return {
        "with_truth": any(method.truth is not None for method in methods),
        "intervals": [(m, intervals(m, scale, mean_loss)) for m in methods if m.estimates],
        "formulas": _formula_words(results),
        "charts": [(chart, plot(chart)) for chart in pooled],
    }


SECTION = Section("evidence", "How the evidence holds", "estimator_comparison.html", _make)


def _formula_words(results: Results) -> list[tuple[str, str]]:
    """The formulas that were used and say what they do, in their order."""
    used = {e.estimator: e for method in results.methods for e in method.estimates}
    return [(e.label or e.estimator, e.sentence) for e in used.values() if e.sentence]
