"""How the evidence holds: all estimators side by side, and the charts of a study."""

from etips.report.plots import intervals, plot, risk_scale
from etips.report.section import Section
from etips.results.results import Results
from etips.results.study_result import StudyResult


def _make(results: Results) -> dict[str, object]:
    mean_loss, methods = results.data.mean_loss, results.methods
    scale = risk_scale(methods, mean_loss)
    charts = results.charts if isinstance(results, StudyResult) else ()
    return {
        "with_truth": any(method.truth is not None for method in methods),
        "intervals": [(m, intervals(m, scale, mean_loss)) for m in methods if m.estimates],
        "formulas": _formula_words(results),
        "charts": [(chart, plot(chart)) for chart in charts],
    }


SECTION = Section("evidence", "How the evidence holds", "estimator_comparison.html", _make)


def _formula_words(results: Results) -> list[tuple[str, str]]:
    """The formulas that were used and say what they do, in their order."""
    used = {e.estimator: e for method in results.methods for e in method.estimates}
    return [(e.label or e.estimator, e.sentence) for e in used.values() if e.sentence]
