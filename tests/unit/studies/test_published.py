"""Figures of the paper."""

from etips.learn.learners.catalogue import METHODS
from etips.studies.published import TABLE1, TABLE1_ABOUT, TABLE2, Figure


def test_a_published_figure_is_printed_as_the_paper_does():
    assert str(Figure(0.923, 0.0122)) == "0.923 ± 0.0122"
    assert str(TABLE1["digits-rows"]["etips"]) == "0.953 ± 0.0390"


def test_every_figure_is_of_a_method_that_there_is():
    named = {*TABLE1["digits-zeros"], *TABLE1["digits-rows"], *TABLE2}
    assert named <= set(METHODS)
    assert set(TABLE1_ABOUT) == {"full-supervision", "logging"}
