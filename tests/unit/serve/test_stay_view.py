import numpy as np
from served_runs import desk


def view(at=0, lag=0):
    from etips.serve.stay_view import StayView

    own = desk(lag)
    return StayView.of(own.advisor, own.form, own.stays, own.stays.rows[0].code, at)


def test_a_view_is_of_one_decision_with_what_it_sees_last():
    for lag in (0, 1):
        own = view(at=1, lag=lag)
        stays = desk(lag).stays
        number = stays.place[own.code]
        rows = stays.data.sequence[stays.data.offsets[number] : stays.data.offsets[number + 1]]
        assert own.row == own.step - lag
        assert own.value(own.form.sequence[0]) == rows[own.row, 0]
        assert own.logged == stays.data.action[stays.data.offsets[number] + own.step]
        assert own.fixed(own.form.static[0]) == stays.data.static[number, 0]


def test_a_decision_past_the_end_is_the_last():
    assert view(at=999).at == view().n_decisions - 1


def test_other_values_are_asked_about_and_the_stay_is_left_alone():
    own = view()
    before = own.features.copy()
    low = own.changed({"MeanBP": 40.0}, {})
    high = own.changed({"MeanBP": 110.0}, {})
    assert low.value(own.form.sequence[0]) == 40
    assert "vasopressor 2" in own.advisor.labels[low.advised]
    assert "vasopressor 0" in own.advisor.labels[high.advised]
    older = own.changed({}, {"age": 95.0})
    assert older.fixed(own.form.static[0]) == 95
    np.testing.assert_array_equal(own.features, before)


def test_what_comes_later_does_not_change_an_earlier_decision():
    own = view(at=1)
    changed = own.changed({"MeanBP": 30.0}, {})
    np.testing.assert_array_equal(changed.advice.probabilities[0], own.advice.probabilities[0])
