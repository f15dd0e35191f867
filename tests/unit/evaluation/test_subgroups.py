import math

import numpy as np
import pytest
from evaluation_logs import make_log
from hypothesis import given, settings
from hypothesis import strategies as st

from etips.errors import DataError, SettingError
from etips.evaluation import bands, hide_small, logged_risk, snips, subgroup_table, view


def test_each_level_has_its_own_risk_gain_and_size():
    log, table, _ = make_log(n_stays=60)
    policy = view(log, table)
    group = np.where(log.cluster < 40, "young", "old")
    old, young = subgroup_table(log, policy, group)
    assert (old.label, young.label) == ("old", "young")
    assert (old.n_people, old.n_decisions) == (20, 60)
    assert (young.n_people, young.n_decisions) == (40, 120)
    inside = log.cluster >= 40
    alone = snips(log.loss[inside], policy.weight[inside], log.cluster[inside])
    assert old.risk == alone
    assert old.effective_n == alone.effective_n
    clinicians = logged_risk(log.loss[inside], log.cluster[inside]).risk
    assert old.gain.difference == pytest.approx(alone.risk - clinicians)


def test_people_are_counted_once_however_many_stays_they_have():
    log, table, _ = make_log(n_stays=60)
    people = log.cluster // 3
    found = subgroup_table(log, view(log, table), np.zeros(log.n_decisions), people=people)
    assert found[0].n_people == 20


def test_a_small_level_is_hidden_and_cannot_be_had_by_subtraction():
    log, table, _ = make_log(n_stays=60)
    group = np.select([log.cluster < 5, log.cluster < 20], ["a", "b"], "c")  # 5, 15 and 40 people
    a, b, c = subgroup_table(log, view(log, table), group)
    assert a.n_people is None
    assert b.n_people is None
    assert b.n_decisions is b.effective_n is b.risk is b.gain is None
    assert c.n_people == 40


def test_a_level_of_eleven_is_shown():
    log, table, _ = make_log(n_stays=60)
    group = (log.cluster < 11).astype(int)
    assert [row.n_people for row in subgroup_table(log, view(log, table), group)] == [49, 11]
    group = (log.cluster < 10).astype(int)
    assert [row.n_people for row in subgroup_table(log, view(log, table), group)] == [None, None]


def test_hiding_by_hand():
    assert hide_small([5, 20, 30]).tolist() == [True, True, False]
    assert hide_small([0, 20, 30]).tolist() == [False, False, False]
    assert hide_small([3, 4, 0]).tolist() == [True, True, False]
    assert hide_small([10, 10, 11, 11]).tolist() == [True, True, True, False]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8))
@settings(max_examples=300, deadline=None)
def test_no_hidden_count_is_pinned_by_the_total(counts):
    """An attacker knows the total and that no hidden cell is empty, not which ones were small."""
    hidden = hide_small(counts)
    numbers = np.array(counts)
    assert not ((numbers > 0) & (numbers < 11) & ~hidden).any()
    if hidden.any() and (numbers >= 11).any():
        assert hidden.sum() >= 2
        rest = numbers[hidden].sum()
        assert rest - (hidden.sum() - 1) - 1 >= 10  # width of what any hidden cell may be


def test_bands_open_at_their_edge_and_keep_the_missing_apart():
    found = bands([1.0, 2.0, 5.0, math.nan, 9.0], [2, 5]).tolist()
    assert found == ["under 2", "2 to under 5", "5 and over", "missing", "5 and over"]
    for edges in ([], [2, 2], [3, 1]):
        with pytest.raises(SettingError, match="edges"):
            bands([1.0], edges)


def test_a_level_within_one_cluster_has_counts_but_no_risk():
    log, table, _ = make_log(n_stays=2, per_stay=60)
    people = np.arange(120) // 4
    found = subgroup_table(log, view(log, table), log.cluster, people=people)
    assert [row.n_people for row in found] == [15, 15]
    assert all(row.risk is None and row.gain is None for row in found)


def test_columns_of_the_wrong_length_and_a_bad_limit_are_refused():
    log, table, _ = make_log()
    policy = view(log, table)
    with pytest.raises(DataError, match=r"^group: must have one entry a decision\.$"):
        subgroup_table(log, policy, np.zeros(3))
    with pytest.raises(DataError, match="people"):
        subgroup_table(log, policy, np.zeros(log.n_decisions), people=np.zeros(3))
    with pytest.raises(SettingError, match="min_cell"):
        subgroup_table(log, policy, np.zeros(log.n_decisions), min_cell=0)
