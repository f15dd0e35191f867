"""What the arrays of an evaluation must satisfy: refused by place, rule and row, never a value."""

import math

import numpy as np
import pytest
from evaluation_logs import make_log

from etips.errors import DataError, SettingError
from etips.evaluation import (
    Log,
    Logit,
    Percentile,
    Studentised,
    Wald,
    atenp,
    dm,
    dr,
    ips,
    logged_risk,
    matching_factor,
    snips,
    view,
    weigh,
)
from etips.evaluation.inference.checks import code_clusters, totals

N = 20
CLUSTER = np.arange(N) // 2
SECRET = 0.7362514  # stands for a patient's value: no refusal may show it


def values(*, bad, rows=(3, 7)):
    column = np.full(N, SECRET)
    column[list(rows)] = bad
    return column


def probabilities(*, bad=None, row=4):
    table = np.tile([0.25, 0.75], (N, 1))
    if bad is not None:
        table[row] = bad
    return table


def refusal(call, *args, **options):
    with pytest.raises(DataError) as caught:
        call(*args, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert "0.736" not in text
    return text


ONES, EVEN, FIRST = np.ones(N), np.full(N, 0.5), np.zeros(N, dtype=int)
AT_3 = "2 of 20 rows fail, first at row 3."
LENGTH = "must have as many rows as there are decisions; 3 of 20 rows fail, first at row 17."
ONE_EACH = "must have one entry a decision."
HALF = CLUSTER.astype(float)
HALF[5] = math.nan
ALONE = "cluster: must name at least two clusters. One cluster has no spread to learn from."
SHAPE = "probabilities: must have two axes and one column for each action."
TEXT = [str(SECRET)] * (N - 1) + ["unknown"]
SHORT = {"predicted": ONES, "predicted_policy": ONES[:-3]}
TINY = f"propensity: must not be so small that a weight is infinite; {AT_3}"


def log_of(**more):
    fields = {"loss": ONES, "action": FIRST, "cluster": CLUSTER, "propensity": EVEN, "n_actions": 2}
    return Log(**{**fields, **more})


@pytest.mark.parametrize(
    ("words", "call", "arguments"),
    [
        *((f"loss: must be finite; {AT_3}", snips, (values(bad=bad), ONES, CLUSTER))
          for bad in (math.nan, math.inf, -math.inf)),
        (f"loss: must be finite; {AT_3}", logged_risk, (values(bad=math.nan), CLUSTER)),
        *((f"weight: must be finite and not negative; {AT_3}", call, arguments)
          for bad in (math.nan, math.inf, -SECRET)
          for call, arguments in ((ips, (ONES, values(bad=bad), CLUSTER)),
                                  (snips, (ONES, values(bad=bad), CLUSTER)),
                                  (matching_factor, (values(bad=bad), CLUSTER)))),
        *((f"propensity: must be above 0 and at most 1; {AT_3}", weigh,
           (probabilities(), FIRST, values(bad=bad)))
          for bad in (math.nan, math.inf, 0.0, -SECRET, 7.0)),
        *((f"probabilities: {rule}; 1 of 20 rows fail, first at row 4.", call, arguments)
          for bad, rule in (([math.nan, 0.5], "must be finite"),
                            ([math.inf, 0.5], "must be finite"),
                            ([math.inf, -math.inf], "must be finite"),
                            ([-0.5, 1.5], "must lie between 0 and 1"),
                            ([1.5, -0.5], "must lie between 0 and 1"),
                            ([0.25, 0.5], "must sum to one in every row"),
                            ([0.75, 0.75], "must sum to one in every row"),
                            ([0.0, 0.0], "must sum to one in every row"))
          for call, arguments in ((weigh, (probabilities(bad=bad), FIRST, EVEN)),
                                  (atenp, (ONES, FIRST, probabilities(bad=bad), CLUSTER)))),
        *((f"action: must be a whole number from 0 to 1; {AT_3}", weigh,
           (probabilities(), np.where(np.isin(np.arange(N), (3, 7)), bad, 0), EVEN))
          for bad in (-1, 2, 0.5, math.nan)),
        (f"weight: {LENGTH}", snips, (ONES, ONES[:-3], CLUSTER)),
        (f"weight: {LENGTH}", snips, (ONES[:-3], ONES, CLUSTER)),
        (f"cluster: {LENGTH}", snips, (ONES, ONES, CLUSTER[:-3])),
        (f"cluster: {LENGTH}", snips, (ONES[:-3], ONES[:-3], log_of().clusters)),
        (f"probabilities: {LENGTH}", weigh, (probabilities()[:-3], FIRST, ONES)),
        (ALONE, snips, (ONES, ONES, FIRST)),
        (ALONE, snips, (ONES, ONES, np.full(N, "stay"))),
        ("cluster: must be a whole number; 1 of 20 rows fail, first at row 5.", snips,
         (ONES, ONES, HALF)),
        (f"loss: {ONE_EACH}", snips, (ONES[:, None], ONES, CLUSTER)),
        (f"weight: {ONE_EACH}", snips, (ONES, ONES[:, None], CLUSTER)),
        (f"cluster: {ONE_EACH}", logged_risk, (ONES, ONES[:, None])),
        (f"predicted_policy: {ONE_EACH}", dm, (0.5, CLUSTER)),
        ("loss: must have at least one row.", snips, ([], [], [])),
        ("loss: must be numbers, with rows of one length.", logged_risk, (TEXT, CLUSTER)),
        (SHAPE, weigh, (ONES, FIRST, EVEN)),
        (SHAPE, weigh, (np.ones((N, 0)), FIRST, EVEN)),
        ("probabilities: must have two axes and 2 columns.", view, (log_of(), np.ones((N, 1)))),
        (TINY, weigh, (probabilities(), FIRST, np.where(values(bad=0.0) > 0, 0.5, 1e-320))),
        (TINY, view, (log_of(propensity=np.where(values(bad=0.0) > 0, 0.5, 1e-320)),
                      probabilities())),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_by_place_rule_and_row(words, call, arguments):
    assert refusal(call, *arguments) == words


def test_what_is_given_by_name_is_refused_likewise():
    assert refusal(dr, ONES, ONES, CLUSTER, **SHORT) == f"predicted_policy: {LENGTH}"
    assert refusal(snips, ONES, ONES, CLUSTER, count=ONES[:-3]) == f"count: {LENGTH}"
    expected = f"propensity: must be above 0 and at most 1; {AT_3}"
    assert refusal(log_of, propensity=values(bad=7.0)) == expected


def test_float32_rounding_of_a_softmax_is_not_refused():
    generator = np.random.default_rng(0)
    scores = np.exp(generator.normal(size=(200, 25)).astype(np.float32))
    table = scores / scores.sum(axis=1, keepdims=True)
    assert table.dtype == np.float32
    action = generator.integers(0, 25, 200)
    assert weigh(table, action, np.full(200, 0.04)).dtype == np.float64


def test_huge_but_finite_predictions_are_accepted():
    log, _, _ = make_log(predicted=False)
    huge = np.full((log.n_decisions, 4), 1e308)
    fields = {name: getattr(log, name) for name in ("loss", "action", "propensity", "cluster")}
    assert Log(**fields, n_actions=4, predicted=huge).predicted is not None


def test_propensities_that_disagree_with_the_logged_one_are_refused():
    log, _, _ = make_log(predicted=False)
    table = log.propensities.copy()
    table[2] = table[2, ::-1]
    fields = {name: getattr(log, name) for name in ("loss", "action", "propensity", "cluster")}
    text = refusal(Log, **fields, n_actions=4, propensities=table)
    assert text.startswith("propensities: must hold the propensity of the logged action")
    assert text.endswith("1 of 180 rows fail, first at row 2.")


@pytest.mark.parametrize("interval", [Wald, Logit, Percentile, Studentised])
@pytest.mark.parametrize("level", [0.0, 1.0, math.nan])
def test_a_level_outside_0_to_1_is_refused(interval, level):
    with pytest.raises(SettingError, match=r"^level: must lie between 0 and 1\.$"):
        interval(level=level)


@pytest.mark.parametrize("interval", [Percentile, Studentised])
def test_too_few_replicates_are_refused(interval):
    with pytest.raises(SettingError, match=r"^replicates: must be at least 100\.$"):
        interval(replicates=99)


def test_settings_of_a_log_are_checked():
    log, _, _ = make_log()
    fields = {name: getattr(log, name) for name in ("loss", "action", "propensity", "cluster")}
    with pytest.raises(SettingError, match="n_actions"):
        Log(**fields, n_actions=1)
    with pytest.raises(SettingError, match="propensity_floor"):
        Log(**fields, n_actions=4, propensity_floor=1.0)


def test_clusters_are_coded_in_the_order_of_their_ids_and_summed():
    for ids in ([30, 10, 30, 20], [3e9, 1e9, 3e9, 2e9], ["c", "a", "c", "b"]):
        clusters = code_clusters(ids, n=4)
        assert clusters.code.tolist() == [2, 0, 2, 1]
        assert clusters.size == 3
        assert clusters.sums(np.array([1.0, 2.0, 4.0, 8.0])).tolist() == [2, 8, 5]
        assert code_clusters(clusters, n=4) is clusters
    assert totals(np.array([1, 1]), np.array([2.0, 3.0]), 3).tolist() == [0, 5, 0]
