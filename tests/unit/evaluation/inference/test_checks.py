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


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_is_refused_by_row(bad):
    expected = "loss: must be finite; 2 of 20 rows fail, first at row 3."
    assert refusal(snips, values(bad=bad), np.ones(N), CLUSTER) == expected
    assert refusal(logged_risk, values(bad=bad), CLUSTER) == expected


@pytest.mark.parametrize("bad", [math.nan, math.inf, -SECRET])
def test_a_weight_that_is_not_finite_or_negative_is_refused_by_row(bad):
    expected = "weight: must be finite and not negative; 2 of 20 rows fail, first at row 3."
    for estimator in (ips, snips):
        assert refusal(estimator, np.ones(N), values(bad=bad), CLUSTER) == expected
    assert refusal(matching_factor, values(bad=bad), CLUSTER) == expected


@pytest.mark.parametrize("bad", [math.nan, math.inf, 0.0, -SECRET, 7.0])
def test_a_propensity_outside_its_range_is_refused_by_row(bad):
    action = np.zeros(N, dtype=int)
    expected = "propensity: must be above 0 and at most 1; 2 of 20 rows fail, first at row 3."
    assert refusal(weigh, probabilities(), action, values(bad=bad)) == expected
    arrays = {"loss": np.ones(N), "action": action, "cluster": CLUSTER, "n_actions": 2}
    assert refusal(Log, **arrays, propensity=values(bad=bad)) == expected


@pytest.mark.parametrize(
    ("bad", "rule"),
    [
        ([math.nan, 0.5], "must be finite"),
        ([math.inf, 0.5], "must be finite"),
        ([math.inf, -math.inf], "must be finite"),
        ([-0.5, 1.5], "must lie between 0 and 1"),
        ([1.5, -0.5], "must lie between 0 and 1"),
        ([0.25, 0.5], "must sum to one in every row"),
        ([0.75, 0.75], "must sum to one in every row"),
        ([0.0, 0.0], "must sum to one in every row"),
    ],
)
def test_a_row_that_is_no_distribution_is_refused(bad, rule):
    expected = f"probabilities: {rule}; 1 of 20 rows fail, first at row 4."
    action, propensity = np.zeros(N, dtype=int), np.full(N, 0.5)
    assert refusal(weigh, probabilities(bad=bad), action, propensity) == expected
    assert refusal(atenp, np.ones(N), action, probabilities(bad=bad), CLUSTER) == expected


def test_float32_rounding_of_a_softmax_is_not_refused():
    generator = np.random.default_rng(0)
    scores = np.exp(generator.normal(size=(200, 25)).astype(np.float32))
    table = scores / scores.sum(axis=1, keepdims=True)
    assert table.dtype == np.float32
    action = generator.integers(0, 25, 200)
    assert weigh(table, action, np.full(200, 0.04)).dtype == np.float64


@pytest.mark.parametrize("bad", [-1, 2, 0.5, math.nan])
def test_an_action_out_of_range_is_refused(bad):
    action = np.zeros(N)
    action[[3, 7]] = bad
    expected = "action: must be a whole number from 0 to 1; 2 of 20 rows fail, first at row 3."
    assert refusal(weigh, probabilities(), action, np.full(N, 0.5)) == expected


def test_mismatched_lengths_are_refused_with_the_rows_that_have_no_partner():
    text = "must have as many rows as there are decisions; 3 of 20 rows fail, first at row 17."
    assert refusal(snips, np.ones(N), np.ones(N - 3), CLUSTER) == f"weight: {text}"
    assert refusal(snips, np.ones(N - 3), np.ones(N), CLUSTER) == f"weight: {text}"
    assert refusal(snips, np.ones(N), np.ones(N), CLUSTER[:-3]) == f"cluster: {text}"
    coded = Log(np.ones(N), [0] * N, [0.5] * N, CLUSTER, n_actions=2).clusters
    assert refusal(snips, np.ones(N - 3), np.ones(N - 3), coded) == f"cluster: {text}"
    model = {"predicted": np.ones(N), "predicted_policy": np.ones(N - 3)}
    assert refusal(dr, np.ones(N), np.ones(N), CLUSTER, **model) == f"predicted_policy: {text}"
    count = np.ones(N - 3)
    assert refusal(snips, np.ones(N), np.ones(N), CLUSTER, count=count) == f"count: {text}"
    assert refusal(weigh, probabilities()[:-3], np.zeros(N), np.ones(N)) == f"probabilities: {text}"


def test_a_single_cluster_is_refused():
    expected = "cluster: must name at least two clusters. One cluster has no spread to learn from."
    assert refusal(snips, np.ones(N), np.ones(N), np.zeros(N, dtype=int)) == expected
    assert refusal(snips, np.ones(N), np.ones(N), np.full(N, "stay")) == expected


def test_cluster_ids_that_are_not_whole_are_refused():
    cluster = CLUSTER.astype(float)
    cluster[5] = math.nan
    expected = "cluster: must be a whole number; 1 of 20 rows fail, first at row 5."
    assert refusal(snips, np.ones(N), np.ones(N), cluster) == expected


def test_a_column_with_two_axes_is_refused():
    wide = np.ones((N, 1))
    assert refusal(snips, wide, np.ones(N), CLUSTER) == "loss: must have one entry a decision."
    assert refusal(snips, np.ones(N), wide, CLUSTER) == "weight: must have one entry a decision."
    assert refusal(logged_risk, np.ones(N), wide) == "cluster: must have one entry a decision."


def test_a_propensity_too_small_to_divide_by_is_refused():
    propensity = np.full(N, 0.5)
    propensity[[3, 7]] = 1e-320
    action = np.zeros(N, dtype=int)
    expected = (
        "propensity: must not be so small that a weight is infinite; "
        "2 of 20 rows fail, first at row 3."
    )
    assert refusal(weigh, probabilities(), action, propensity) == expected
    log = Log(np.ones(N), action, propensity, CLUSTER, n_actions=2)
    assert refusal(view, log, probabilities()) == expected


def test_empty_and_scalar_and_text_input_is_refused():
    assert refusal(snips, [], [], []) == "loss: must have at least one row."
    assert refusal(dm, 0.5, CLUSTER) == "predicted_policy: must have one entry a decision."
    text = [str(SECRET)] * (N - 1) + ["unknown"]
    assert refusal(logged_risk, text, CLUSTER) == "loss: must be numbers, with rows of one length."
    assert "one entry a decision" in refusal(matching_factor, 1.0, CLUSTER)
    assert "as many rows" in refusal(weigh, probabilities(), [], [])


def test_a_table_of_the_wrong_shape_is_refused():
    action, propensity = np.zeros(N, dtype=int), np.full(N, 0.5)
    expected = "probabilities: must have two axes and one column for each action."
    assert refusal(weigh, np.ones(N), action, propensity) == expected
    assert refusal(weigh, np.ones((N, 0)), action, propensity) == expected
    log, table, _ = make_log()
    assert refusal(view, log, table[:, :-1]) == "probabilities: must have two axes and 4 columns."


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
