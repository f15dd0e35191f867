"""The figures of a study as data."""

import pytest
from hand_made_findings import PATH, findings

from etips.studies.charts import atenp_bars, make_charts, translation_paths, truth


def test_each_table_has_its_figures():
    names = [chart.name for chart in make_charts(findings())]
    assert names == ["atenp", "truth", "path-snips", "path-factor"]
    names = [chart.name for chart in make_charts(findings("table1"))]
    assert names[:4] == ["labels", "accuracy-atenp", "accuracy-ips", "accuracy-dr"]


def test_bars_of_atenp_are_means_over_folds_under_the_names_of_tables():
    made = findings()
    (bars,) = atenp_bars(made).series
    assert bars.x == ("etips", "random")
    assert bars.y == pytest.approx([made.measures[name][0].atenp for name in made.measures])
    assert bars.error == pytest.approx((0.0, 0.0))


def test_every_estimate_stands_against_the_truth_of_its_policy():
    made = findings()
    series = truth(made).series
    assert [own.name for own in series] == ["SNIPS", "IPS", "DR"]
    for own in series:
        assert own.x == tuple(method.truth for method in made.assessed)
        assert len(own.error) == len(own.y) == 2


def test_a_path_is_drawn_for_methods_that_have_one_and_without_constant_policies():
    snips, factor = translation_paths(findings())
    assert [own.name for own in snips.series] == ["etips"]
    assert snips.series[0].x == (0.3, 0.7)
    assert snips.series[0].y == (0.5, 0.4)
    assert factor.series[0].y == (1.0, 0.9)
    assert translation_paths(findings(path=PATH[:1])) == []
