"""Better than the clinicians: with Holm's correction, on unseen stays."""

import pytest
from evaluation_logs import gain_of

from etips.errors import DataError, SettingError
from etips.evaluation import holm, require_unseen, safe_improvement


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.02]) == pytest.approx([0.02])


def test_safe_improvement_corrects_for_every_policy_asked_about():
    single = gain_of(0.16)
    assert 0.001 < single.p_value < 0.05
    (alone,) = safe_improvement({"one": single})
    assert alone.better
    many = {"one": single} | {f"other {i}": gain_of(0.0, seed=i) for i in range(1, 60)}
    found = safe_improvement(many)
    assert not found[0].better
    assert found[0].adjusted_p == pytest.approx(min(1, 60 * single.p_value))
    assert [f.policy for f in found] == list(many)


def test_safe_improvement_refuses_nothing_and_a_bad_level():
    with pytest.raises(DataError, match="at least one policy"):
        safe_improvement({})
    with pytest.raises(SettingError, match="alpha"):
        safe_improvement({"one": gain_of(0.1)}, alpha=1.5)


def test_stays_used_for_selection_are_refused_without_their_ids():
    require_unseen([4, 5, 6], [1, 2, 3])
    with pytest.raises(DataError) as caught:
        require_unseen([40041, 5, 6, 5], [5, 77])
    expected = (
        "cluster: must not have been used for selection; 2 of 4 rows fail, first at row 1. "
        "Evaluate on held-out stays."
    )
    assert str(caught.value) == expected
