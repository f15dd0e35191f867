"""P2 at the terminal: what `etips cohort` prints of its funnel."""

from types import SimpleNamespace

from etips.cli.cohort import count_outcomes, dose_rows, funnel_rows
from etips.cohorts.dataset.agreement import Check, Outcome
from etips.cohorts.dataset.dose_actions import DoseClasses
from etips.disclosure import shown_funnel


def printed(*counts):
    """What is printed of a funnel with so many stays at each step."""
    stages = [SimpleNamespace(name=f"step {n}", n_stays=count) for n, count in enumerate(counts)]
    shown = shown_funnel(counts, 900, [700])
    funnel = SimpleNamespace(stages=stages, n_rows=900, n_samples={"A": 700}, shown=shown)
    return [row["count"] for row in funnel_rows(SimpleNamespace(funnel=funnel))][: len(counts)]


def test_neither_a_small_count_nor_one_that_tells_it_by_subtraction_is_printed():
    assert printed(500, 495, 100) == [500, "not shown", 100]
    assert printed(500, 108, 100, 7) == [500, 108, "not shown", "under 11"]
    assert printed(500, 300, 0) == [500, 300, 0]


def test_rows_and_decisions_are_not_printed_where_they_tell_of_a_few():
    """136 rows and 135 decisions are one row without."""
    shown = shown_funnel([500], 136, [135, 60])
    stages = [SimpleNamespace(name="all", n_stays=500)]
    funnel = SimpleNamespace(stages=stages, n_rows=136, n_samples={"A": 135, "B": 60}, shown=shown)
    rows = funnel_rows(SimpleNamespace(funnel=funnel))
    assert [row["count"] for row in rows] == [500, 136, "not shown", 60]


def test_a_dose_class_of_few_rows_is_hidden_with_another():
    classes = DoseClasses((1.0, 2.0, 3.0), (0.0, 1.0, 2.0, 3.0, 4.0), (500, 90, 3, 70, 80))
    rows = dose_rows(SimpleNamespace(fluid=classes, vasopressor=classes))
    assert [row["rows"] for row in rows[:5]] == [500, 90, "not shown", "not shown", 80]


def test_a_validation_ends_with_a_count_of_outcomes():
    checks = [
        Check("a", 1.0, 1.0, 0.9, 1.1, outcome)
        for outcome in (Outcome.PASS, Outcome.FAIL, Outcome.PASS, Outcome.TOO_SMALL)
    ]
    assert count_outcomes(checks) == "4 figures: 2 pass, 1 fail, 1 too small to judge."
