"""What a study adds to results."""

import pytest

from etips.results.parsing import from_json
from etips.results.results import DataSummary
from etips.results.serialization import to_json
from etips.results.study_result import FoldResult, Series, StudyRecord, StudyResult, Table


def test_a_table_has_as_many_cells_as_columns_in_every_row():
    with pytest.raises(ValueError, match="do not fit its columns"):
        Table("t", None, ("a", "b"), ((1, 2), (1,)))


def test_points_of_a_series_have_both_coordinates():
    with pytest.raises(ValueError, match="equal length"):
        Series("a", x=(1.0,), y=(1.0, 2.0))
    with pytest.raises(ValueError, match="equal length"):
        Series("a", x=(1.0,), y=(1.0,), error=())


def test_a_study_is_an_evaluation_with_folds_and_is_read_back_as_written():
    figures = (0.5, 1.0, 0.4, 0.4, 0.4, -0.1, 30, 70, None, None)
    fold = FoldResult(*figures, n_learned_from=50, n_held_out=50)
    study = StudyRecord({"seed": 0}, {"etips": (fold, fold)})
    table = Table("t", "n", ("a", "b"), (("x", 1.5),))
    data = DataSummary(30, 60, 3, 1)
    made = StudyResult(data, (), 1.0, None, None, "A study", "lead", (table,), (), study)
    assert from_json(StudyResult, to_json(made)) == made
    assert repr(made) == "StudyResult on 60 decisions"
