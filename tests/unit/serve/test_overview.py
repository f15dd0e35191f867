from dataclasses import replace

from served_runs import desk, fitted, ward

import etips
from etips.serve.overview import show_overview, verdict_of


def test_a_policy_that_nobody_evaluated_is_shown_without_a_number():
    page = show_overview(desk())
    assert "not evaluated" in page
    assert verdict_of(None) is None


def test_the_finding_and_the_verdict_are_those_of_the_report_h2():
    results = etips.evaluate({"run": fitted()}, ward(60, seed=5))
    own = desk()
    page = show_overview(replace(own, record=replace(own.record, results=results)))
    assert results.headline.verdict in page
    assert "The policies" in page
    assert "Where the policy differs" in page
    assert ' style="' not in page
    assert verdict_of(results) == results.headline.verdict
