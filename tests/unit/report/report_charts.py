"""Charts for the tests of drawings."""

from dataclasses import replace

from etips.results.study_result import Chart, Series

NUMBERS = (
    Series("a$", x=(0.0, 1.0, 2.0), y=(1.0, None, 3.0), error=(0.1, None, None)),
    Series("中文", x=(0.0, 1.0, 2.0), y=(2.0, 2.0, 2.0)),
)
CHART = Chart("c", "lines", "$title_1$ <b>", caption="", x="x", y="y", series=NUMBERS)


def in_words(kind):
    """The same along an axis of names."""
    series = tuple(replace(own, x=("low", "middle $", "high")) for own in NUMBERS)
    return replace(CHART, kind=kind, series=series)


def scatter_of(*ys):
    """Series of the same name, one point each; None for a series without."""
    series = tuple(Series("a", x=(1.0,), y=(y,)) for y in ys)
    return replace(CHART, kind="scatter", series=series)
