"""A log, a policy seen through it, and how much a table of features tells."""

from dataclasses import replace

import numpy as np
import pytest
from evaluation_logs import make_log

from etips.data import from_arrays
from etips.errors import DataError
from etips.evaluation import Log, view
from etips.evaluation.log import PROPENSITY_FLOOR, breadth

TABLE = np.array([[0.005, 0.995], [0.6, 0.4], [0.3, 0.7], [0.9, 0.1]])
ACTION = np.array([0, 1, 1, 0])


def logged_stays(*, groups=None, known=False):
    """Four stays of one decision each."""
    return from_arrays(
        np.arange(8.0).reshape(4, 2),
        ACTION,
        [0.0, 1.0, 1.0, 0.0],
        propensity=TABLE[np.arange(4), ACTION] if known else None,
        groups=groups,
    )


def test_estimated_propensities_are_raised_to_the_floor_and_the_table_is_kept():
    log = Log.of(logged_stays(), propensities=TABLE)
    assert log.propensity.tolist() == [PROPENSITY_FLOOR, 0.4, 0.7, 0.9]
    assert log.propensity_floor == PROPENSITY_FLOOR == 0.01
    assert (log.propensities == TABLE).all()
    assert (log.loss.tolist(), log.action.tolist()) == ([0, 1, 1, 0], ACTION.tolist())
    assert log.n_actions == 2
    assert log.predicted is None
    assert Log.of(logged_stays(), propensities=TABLE, floor=0.5).propensity.min() == 0.5


@pytest.mark.parametrize("table", [None, TABLE])
def test_known_propensities_are_never_raised(table):
    log = Log.of(logged_stays(known=True), propensities=table, predicted=1 - TABLE)
    assert log.propensity.tolist() == [0.005, 0.4, 0.7, 0.9]
    assert log.propensity_floor == 0
    assert (log.predicted == 1 - TABLE).all()


def test_patients_are_the_clusters_where_the_data_names_them():
    people = np.array(["b", "a", "b", "c"])
    assert Log.of(logged_stays(groups=people), propensities=TABLE).clusters.size == 3
    assert Log.of(logged_stays(), propensities=TABLE).clusters.size == 4


def test_a_log_without_any_propensity_is_refused():
    with pytest.raises(DataError, match=r"^propensities: must be given where the data knows none"):
        Log.of(logged_stays())


def test_known_propensities_must_agree_with_the_table_beside_them():
    with pytest.raises(DataError, match=r"^propensities: must hold the propensity of the logged"):
        Log.of(logged_stays(known=True), propensities=TABLE[::-1])


def test_taking_some_decisions_keeps_everything_about_them():
    log, table, _ = make_log(floor=0.01)
    keep = log.cluster % 2 == 0
    part = log.take(keep)
    assert part.n_decisions == keep.sum()
    assert part.clusters.size == 30
    assert part.propensity_floor == 0.01
    whole = view(log, table).predicted_policy[keep]
    assert view(part, table[keep]).predicted_policy == pytest.approx(whole)
    bare, _, _ = make_log(full=False, predicted=False)
    assert bare.take(keep).propensities is None


def test_a_policy_is_seen_by_its_weights_its_choice_and_its_predicted_loss():
    log = Log.of(logged_stays(), propensities=TABLE, predicted=np.tile([0.25, 0.5], (4, 1)))
    seen = view(log, [[0.5, 0.5], [0.2, 0.8], [1.0, 0.0], [0.0, 1.0]])
    assert seen.weight == pytest.approx([50, 2, 0, 0])
    assert seen.recommended.tolist() == [0, 1, 0, 1]
    assert seen.predicted.tolist() == [0.25, 0.5, 0.5, 0.25]
    assert seen.predicted_policy == pytest.approx([0.375, 0.45, 0.25, 0.5])
    blind = view(replace(log, predicted=None), seen.probabilities)
    assert blind.predicted is None


def test_a_policy_that_abstains_weighs_one_there_whatever_the_propensity():
    log = Log.of(logged_stays(), propensities=TABLE, predicted=np.tile([0.25, 0.5], (4, 1)))
    table = [[0.5, 0.5], [0.2, 0.8], [1.0, 0.0], [0.0, 1.0]]
    seen = view(log, table, abstains=np.array([True, False, True, False]))
    assert seen.weight == pytest.approx([1, 2, 1, 0])
    assert seen.predicted_policy == pytest.approx([0.25, 0.45, 0.5, 0.5])
    assert seen.abstains.tolist() == [True, False, True, False]
    assert not view(log, table).abstains.any()
    for wrong in ([True], np.ones(4)):
        with pytest.raises(DataError, match=r"^abstains: must hold yes or no"):
            view(log, table, abstains=wrong)


def test_a_policy_that_repeats_the_propensities_leaves_it_to_the_clinicians():
    log = Log.of(logged_stays(), propensities=TABLE)  # the first was raised to the floor
    seen = view(log, TABLE)
    assert seen.abstains.all()
    assert (seen.weight == 1).all()
    table = TABLE.copy()
    table[1] = (0.5, 0.5)
    assert view(log, table).abstains.tolist() == [True, False, True, True]


def test_a_log_of_stays_knows_what_was_visible_and_whether_propensities_are_by_design():
    estimated, known = (Log.of(logged_stays(known=k), propensities=TABLE) for k in (False, True))
    assert (estimated.known, known.known) == (False, True)
    assert estimated.features[:, :2].tolist() == np.arange(8.0).reshape(4, 2).tolist()
    designed = Log.of(logged_stays(), propensities=TABLE, known=True)
    assert designed.known
    assert designed.propensity_floor == 0
    assert designed.propensity[0] == 0.005  # by design, so never raised
    late = logged_stays().schema
    assert estimated.lag == late.lag == 0


def test_features_may_be_missing_but_not_infinite_and_travel_with_their_decisions():
    log, _, feature = make_log(predicted=False)
    rows = np.stack([feature, np.full(feature.size, np.nan)], axis=1)
    log = replace(log, features=rows, lag=1, known=True)
    part = log.take(log.cluster < 10)
    assert part.features.shape == (30, 2)
    assert (part.lag, part.known) == (1, True)
    assert replace(log, features=rows.astype(np.float32)).features.dtype == np.float32
    rows = rows.copy()
    rows[7] = np.inf
    with pytest.raises(DataError, match=r"^features: .*first at row 7"):
        replace(log, features=rows)
    with pytest.raises(DataError, match=r"^features: must have two axes"):
        replace(log, features=feature)


def test_what_one_model_alone_says_stands_beside_what_is_weighed_with():
    log, _, _ = make_log(60)
    table = np.full((log.n_decisions, log.n_actions), 1 / log.n_actions)
    other = log.beside(table, table)
    assert (other.plain_propensity == 1 / log.n_actions).all()
    assert (other.propensity == log.propensity).all()
    assert (other.as_plainly_predicted.predicted == table).all()
    assert other.take(log.action == 0).plain_predicted.shape == (
        (log.action == 0).sum(),
        log.n_actions,
    )


def test_columns_that_say_the_same_count_once():
    rows = np.random.default_rng(0).normal(size=(4000, 5))
    assert breadth(rows) == pytest.approx(5, rel=0.02)
    assert breadth(np.hstack([rows, 2 * rows, 1 - rows])) == pytest.approx(5, rel=0.02)


def test_gaps_and_constants_tell_nothing():
    rows = np.random.default_rng(0).normal(size=(500, 4))
    rows[:, 1] = 3.0
    rows[:, 2] = np.nan
    rows[::3, 3] = np.nan
    assert breadth(rows) == pytest.approx(2, rel=0.05)
    assert breadth(np.ones((10, 2))) == 0
    assert breadth(np.zeros((10, 0))) == 0
