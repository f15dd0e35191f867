"""The paper's tables and figures as data."""

from hand_made_findings import PATH, findings

from etips.learn.learners.catalogue import METHODS
from etips.studies.charts import make_charts, translation_paths, truth
from etips.studies.paper_tables import (
    TABLE1,
    TABLE1_ABOUT,
    TABLE2,
    Figure,
    learned_from,
    make_tables,
    table1,
    table2,
)


def test_table_one_has_the_published_accuracy_beside_ours():
    table = table1(findings("table1"))
    assert table.columns[:3] == ("method", "accuracy", "paper")
    assert [row[0] for row in table.rows] == ["etips", "random"]
    assert [row[2] for row in table.rows] == ["0.923 ± 0.0122", "0.363 ± 0.0001"]
    assert "random is called RP in the paper." in table.note


def test_table_two_has_true_risks_where_they_are_known_and_the_verdict_of_all_folds():
    made = findings()
    table = table2(made)
    assert table.columns[-2:] == ("true risk", "true risk, drawn")
    assert "paper" not in table.columns
    verdicts = [row[table.columns.index("verdict")] for row in table.rows]
    assert verdicts == [method.verdict for method in made.assessed]


def test_the_translation_that_each_fold_chose_is_listed():
    chosen = make_tables(findings())[1]
    assert chosen.rows == (("etips", "0.7", "0.7"),)


def test_what_each_fold_learned_from_is_averaged_over_folds():
    table = learned_from(findings())
    assert table.rows[0] == ("etips", "0.7500", "0.900")
    assert table.rows[1] == ("random", "0.7500", "-")
    assert table.note.startswith("A fold may learn from about 30 stays and is judged on about 30.")


def test_a_published_figure_is_printed_as_the_paper_does():
    assert str(Figure(0.923, 0.0122)) == "0.923 ± 0.0122"
    assert str(TABLE1["digits-rows"]["etips"]) == "0.953 ± 0.0390"


def test_every_figure_is_of_a_method_that_there_is():
    named = {*TABLE1["digits-zeros"], *TABLE1["digits-rows"], *TABLE2}
    assert named <= set(METHODS)
    assert set(TABLE1_ABOUT) == {"full-supervision", "logging"}


def test_each_table_has_its_figures():
    names = [chart.name for chart in make_charts(findings())]
    assert names == ["atenp", "truth", "path-snips", "path-factor"]
    names = [chart.name for chart in make_charts(findings("table1"))]
    assert names[:4] == ["labels", "accuracy-atenp", "accuracy-ips", "accuracy-dr"]


def test_every_estimate_stands_against_the_truth_of_its_policy():
    made = findings()
    series = truth(made).series
    assert [own.name for own in series] == ["SNIPS", "IPS", "DR"]
    for own in series:
        assert own.x == tuple(method.truth for method in made.assessed)
        assert len(own.error) == len(own.y) == 2


def test_a_path_is_drawn_for_methods_that_have_one_and_of_translations_alone():
    snips, factor = translation_paths(findings())
    assert [own.name for own in snips.series] == ["etips"]
    assert snips.series[0].x == (0.3, 0.7)
    assert snips.series[0].y == (0.5, 0.4)
    assert factor.series[0].y == (1.0, 0.9)
    assert translation_paths(findings(path=PATH[:1])) == []
