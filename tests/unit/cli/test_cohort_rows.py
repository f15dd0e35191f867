"""P2 at the terminal: what `etips cohort` prints of its funnel."""

from types import SimpleNamespace

from etips.cli.cohort import funnel_rows


def printed(*counts):
    """What is printed of a funnel with so many stays at each step."""
    stages = [SimpleNamespace(name=f"step {n}", n_stays=count) for n, count in enumerate(counts)]
    funnel = SimpleNamespace(stages=stages, n_rows=900, n_samples={"A": 700})
    return [row["count"] for row in funnel_rows(SimpleNamespace(funnel=funnel))][: len(counts)]


def test_neither_a_small_count_nor_one_that_tells_it_by_subtraction_is_printed():
    assert printed(500, 495, 100) == [500, "not shown", 100]
    assert printed(500, 108, 100, 7) == [500, 108, "not shown", "under 11"]
    assert printed(500, 300, 0) == [500, 300, 0]
