"""The paper's tables as data."""

from dataclasses import replace

from hand_made_findings import findings
from small_worlds import CLINIC

from etips.studies.paper_tables import MIMIC, is_mimic, learned_from, make_tables, table1, table2


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


def test_the_figures_of_table_two_stand_beside_a_cohort_of_mimic_alone():
    stays = replace(CLINIC.log(60, seed=0), truth=None)
    cohort = replace(stays, schema=replace(stays.schema, provenance={"cohort": MIMIC}))
    made = findings(data=cohort)
    assert is_mimic(made)
    table = table2(made)
    assert table.columns.count("paper") == 4
    assert table.rows[0][2] == "-0.143 ± 0.0099"
    assert "true risk" not in table.columns


def test_the_translation_that_each_fold_chose_is_listed():
    chosen = make_tables(findings())[1]
    assert chosen.rows == (("etips", "0.7", "0.7"),)


def test_what_each_fold_learned_from_is_averaged_over_folds():
    table = learned_from(findings())
    assert table.rows[0] == ("etips", "0.7500", "0.900")
    assert table.rows[1] == ("random", "0.7500", "-")
    assert table.note.startswith("A fold may learn from about 30 stays and is judged on about 30.")


def test_table_two_says_whether_its_propensities_were_balanced():
    made = findings()
    assert "balanced" not in table2(made).note
    balanced = {**made.notes, "balance": "balanced: imbalance 0.1 before, 0.01 after"}
    note = table2(replace(made, notes=balanced)).note
    assert "Propensities known (balanced: imbalance 0.1 before, 0.01 after), raised to at" in note
