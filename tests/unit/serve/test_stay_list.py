import numpy as np
from served_runs import desk, ward

from etips.serve.stay_list import StayList, name_stays


def test_names_tell_nothing_and_stay_the_same_for_the_same_key():
    data = ward(30)
    names = name_stays(data, b"key")
    assert len(set(names)) == 30
    assert names == name_stays(data, b"key") != name_stays(data, b"other")
    assert "CANARY" not in "".join(names)


def test_rows_count_disagreement_by_hand():
    own = desk().stays
    stay = own.data.decisions().stay
    other = own.advice.advised != own.data.logged_action
    for row in own.rows:
        mine = stay == own.place[row.code]
        assert row.n_decisions == mine.sum()
        assert row.disagreement == (other & ~own.advice.abstained)[mine].mean()
        places = own.decisions(row.code)
        np.testing.assert_array_equal(np.flatnonzero(mine), np.arange(places.start, places.stop))


def test_what_is_most_worth_a_look_comes_first_and_filters_hold():
    own = desk().stays
    rows = own.select("disagreement", "all")
    shares = [row.disagreement for row in rows]
    assert shares == sorted(shares, reverse=True)
    assert all(row.disagreement for row in own.select("doubt", "disagrees"))
    agreed = own.select("abstention", "agrees")
    assert all(not row.disagreement and not row.abstention for row in agreed)
    assert [row.code for row in own.select("doubt", "all", rows[0].code.lower())] == [rows[0].code]


def test_without_a_log_nobody_disagrees():
    own = desk()
    listed = StayList.of(own.advisor, ward(5).without_log(), b"key")
    assert {row.disagreement for row in listed.rows} == {None}
