"""Trajectories: what they hold, refuse and share."""

from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_cohorts import Cohort, cohorts, with_truth
from stored_stays import coded_data
from strategies import fingerprint

from etips.data import Coded, Schema, Stay, Trajectories
from etips.errors import DataError, EtipsError, SettingError

BIG = Cohort(seed=5, n_stays=30, longest=6, eligible=True)


def arrays_of(data):
    found = {f.name: getattr(data, f.name) for f in fields(data)}
    return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}


def test_the_parts_left_out_are_filled():
    data = Trajectories(
        sequence=np.zeros((5, 1), np.float32),
        offsets=np.array([0, 2, 5]),
        schema=Schema(sequence=("x",), n_actions=2),
    )
    assert data.stay.tolist() == [0, 1]
    assert data.step.tolist() == [0, 1, 0, 1, 2]
    assert data.static.shape == (2, 0)
    assert (data.n_stays, data.n_steps, data.n_actions, data.lag) == (2, 5, 2, 1)
    assert not data.logged


def test_the_log_is_given_by_decision():
    data = BIG.make()
    rows = data.decision_rows
    assert np.array_equal(data.logged_action, data.action[rows])
    assert np.array_equal(data.logged_loss, data.loss[rows])
    assert np.array_equal(data.logged_propensity, data.propensity[rows])
    assert data.logged


@given(cohorts)
def test_a_history_ends_at_the_last_row_that_its_decision_may_see(cohort):
    data = cohort.make()
    starts = data.offsets[data.decisions().stay]
    assert (data.seen_rows == starts + data.histories().lengths - 1).all()


def test_a_decision_belongs_to_its_patient_where_one_is_known_and_to_its_stay_elsewhere():
    data = Cohort(3, n_stays=3, lag=0, readmissions=False).make()
    assert data.units.tolist() == [0, 1, 2]
    assert (data.cluster == data.decisions().stay).all()
    shared = replace(data, group=np.array(["z", "a", "z"]))
    assert shared.units.tolist() == [1, 0, 1]
    assert (shared.cluster == np.array([1, 0, 1])[data.decisions().stay]).all()


def test_arrays_are_read_only_and_fields_frozen():
    data = with_truth(BIG.make())
    with pytest.raises(FrozenInstanceError):
        data.loss = np.zeros(3)
    held = arrays_of(data)
    assert set(held) >= {"sequence", "offsets", "static", "action", "loss", "propensity"}
    for values in (*held.values(), data.truth.code, data.truth.expected_loss, data.truth.logging):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = values[0]


def test_a_coded_sequence_is_read_only_too():
    coded = Coded(np.zeros((2, 1), np.uint8), np.zeros(3, np.int32))
    for values in (coded.table, coded.code):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1


def test_the_callers_own_array_stays_writeable():
    mine = np.zeros((2, 1), np.float32)
    Trajectories(mine, np.array([0, 2]), Schema(sequence=("x",), n_actions=1))
    mine[0] = 1


@pytest.mark.parametrize("stays", [slice(3, 9), slice(4, 5), np.arange(10, 20), slice(None)])
def test_neighbouring_stays_share_memory(stays):
    data = with_truth(BIG.make())
    part = data.subset(stays)
    for name in ("sequence", "action", "loss", "propensity", "eligible", "step", "static", "stay"):
        assert np.shares_memory(getattr(part, name), getattr(data, name)), name
    assert np.shares_memory(part.truth.code, data.truth.code)


@pytest.mark.parametrize("stays", [[7, 2, 29], np.array([0, 5]), np.arange(30) % 3 == 0])
def test_scattered_stays_copy_their_own_rows_and_no_others(stays):
    data = BIG.make()
    numbers = np.arange(30)[np.asarray(stays)]
    part = data.subset(stays)
    assert part.sequence.base is None or part.sequence.base.nbytes == part.sequence.nbytes
    assert not np.shares_memory(part.sequence, data.sequence)
    assert part.n_steps == np.diff(data.offsets)[numbers].sum()


@given(cohorts, st.data())
def test_a_subset_is_the_chosen_stays_one_after_another(cohort, draw):
    data = cohort.make()
    chosen = draw.draw(st.lists(st.integers(0, data.n_stays - 1), min_size=1, max_size=8))
    part = data.subset(chosen)
    assert part.stay.tolist() == data.stay[chosen].tolist()
    for place, stay in enumerate(chosen):
        ours = slice(part.offsets[place], part.offsets[place + 1])
        theirs = slice(data.offsets[stay], data.offsets[stay + 1])
        for name in ("sequence", "action", "loss", "step"):
            a, b = getattr(part, name)[ours], getattr(data, name)[theirs]
            assert a.tobytes() == b.tobytes()
        assert np.array_equal(part.static[place], data.static[stay])
    assert part.schema == data.schema


@pytest.mark.parametrize("stays", [slice(4, 11), slice(3, 20, 4), slice(None, None, -1)])
def test_slices_masks_and_positions_choose_the_same_stays(stays):
    data = with_truth(BIG.make())
    positions = np.arange(data.n_stays)[stays]
    expected = fingerprint(data.subset(stays))
    assert fingerprint(data.subset(positions)) == expected
    assert fingerprint(data.subset(positions.tolist())) == expected
    if stays.step != -1:
        mask = np.isin(np.arange(data.n_stays), positions)
        assert fingerprint(data.subset(mask)) == expected


def test_a_coded_sequence_stays_coded_in_a_subset():
    data = coded_data()
    part = data.subset([2, 0])
    assert isinstance(part.sequence, Coded)
    assert part.sequence.table.base is data.sequence.table.base
    assert np.array_equal(part.sequence[:], data.sequence[:][[4, 5, 0, 1]])


@pytest.mark.parametrize("nobody", [[], slice(0, 0), np.zeros(30, bool)])
def test_a_subset_of_nobody_is_refused(nobody):
    with pytest.raises(DataError, match=r"^subset: must keep at least one stay\.$"):
        BIG.make().subset(nobody)


def test_repr_shows_shapes_and_never_values():
    n = 3
    data = Trajectories(
        sequence=np.full((n, 1), 91919.0, np.float32),
        offsets=np.array([0, n]),
        schema=Schema(sequence=("pulse",), static=("age",), n_actions=4),
        action=np.full(n, 3),
        loss=np.full(n, 92929.0),
        static=np.full((1, 1), 93939.0, np.float32),
        propensity=np.full(n, 0.94949),
        stay=np.array([95959]),
        step=np.array([96960, 96961, 96962]),
        group=np.array([97979]),
    )
    assert repr(data) == (
        "Trajectories(n_stays=1, n_steps=3, n_decisions=2, sequence=1 features, static=1, "
        "n_actions=4, lag=1, with propensity, with group)"
    )
    for text in (repr(data.histories()), str(with_truth(data).truth), repr(data.histories())):
        assert "9" not in text.split("object at")[0]


def test_with_lag_changes_the_history_rule_and_nothing_else():
    data = BIG.make()
    other = data.with_lag(0)
    assert (data.lag, other.lag) == (1, 0)
    assert other.n_decisions > data.n_decisions
    assert np.shares_memory(other.sequence, data.sequence)
    with pytest.raises(SettingError, match=r"^lag: must be 0 or 1\.$"):
        data.with_lag(2)


def test_with_loss_asks_each_stay_and_leaves_the_truth_behind():
    data = with_truth(BIG.make())
    seen = []

    def count(stay: Stay):
        seen.append(stay.sequence.shape)
        return np.arange(len(stay.step), dtype=float) + stay["vital0"] * 0

    other = data.with_loss(count)
    assert [shape[0] for shape in seen] == np.diff(data.offsets).tolist()
    lengths = np.diff(data.offsets)
    assert other.loss.tolist() == [float(t) for n in lengths for t in range(n)]
    assert other.truth is None


def test_without_log_every_step_becomes_a_question():
    data = with_truth(BIG.make()).without_log()
    assert not data.logged
    assert data.propensity is None
    assert data.eligible is None
    assert data.truth is None
    assert data.n_decisions == data.n_steps
    for what in ("logged_action", "logged_loss"):
        with pytest.raises(
            DataError, match=r"^data: holds no logged actions\. Name the action and"
        ):
            getattr(data, what)


def test_a_propensity_that_is_not_there_is_refused():
    data = replace(BIG, propensity=False).make()
    with pytest.raises(DataError, match=r"^propensity: is not in the data\. Estimate it"):
        _ = data.logged_propensity


def change(**parts):
    return lambda data: replace(data, **{name: make(data) for name, make in parts.items()})


def poke(name, place, value):
    def make(data):
        values = getattr(data, name).astype(float if name in ("action", "loss") else None)
        values[place] = value
        return values

    return {name: make}


BAD = {
    "offsets fall": (
        change(offsets=lambda d: d.offsets[::-1].copy()),
        r"^offsets: must start at 0 and rise: every stay has at least one step\.$",
    ),
    "offsets empty": (change(offsets=lambda d: np.zeros(0, int)), r"^offsets: must start at 0"),
    "offsets not whole": (change(offsets=lambda d: d.offsets * 1.0), r"^offsets: must start at 0"),
    "a stay without steps": (
        change(offsets=lambda d: np.concatenate([[0], d.offsets])),
        r"^offsets: must start at 0",
    ),
    "action without loss": (
        change(loss=lambda d: None),
        r"^action, loss: must be given together or not at all\.$",
    ),
    "short loss": (
        change(loss=lambda d: d.loss[1:]),
        r"^loss: must have shape \(\d+,\), has \(\d+,\)\.$",
    ),
    "one feature too few": (
        change(sequence=lambda d: d.sequence[:, 1:]),
        r"^sequence: must have shape \(\d+, 2\), has \(\d+, 1\)\.$",
    ),
    "float64 features": (
        change(sequence=lambda d: d.sequence.astype(float)),
        r"^sequence: must be float32\.$",
    ),
    "infinite feature": (
        change(sequence=lambda d: np.where(np.arange(d.n_steps)[:, None] == 3, np.inf, d.sequence)),
        r"^sequence, feature vital0: must be finite; 1 of \d+ rows fail, first at row 3\.$",
    ),
    "missing static": (
        change(static=lambda d: np.full_like(d.static, np.nan)),
        r"^static, feature fixed0: must be finite; 30 of 30 rows fail, first at row 0\.$",
    ),
    "action too large": (
        change(action=lambda d: np.where(np.arange(d.n_steps) == 4, 3, d.action)),
        r"^action: must be whole, 0\.\.2, or -1 where there is none; 1 of \d+ rows fail, first at "
        r"row 4\.$",
    ),
    "action not whole": (
        change(action=lambda d: d.action + 0.5),
        r"^action: must be whole, 0\.\.2, or -1 where there is none; \d+ of \d+ rows fail",
    ),
    "infinite loss": (
        change(**poke("loss", 2, -np.inf)),
        r"^loss: must be finite, or NaN where it is not known; 1 of \d+ rows fail, first at row 2",
    ),
    "propensity zero": (
        change(propensity=lambda d: d.propensity * 0),
        r"^propensity: must be in \(0, 1\] at every decision; \d+ of \d+ rows fail",
    ),
    "propensity not known": (
        change(propensity=lambda d: np.full(d.n_steps, np.nan)),
        r"^propensity: must be in \(0, 1\] at every decision; \d+ of \d+ rows fail",
    ),
    "steps fall": (
        change(step=lambda d: -d.step),
        r"^step: must rise within a stay; \d+ of \d+ rows fail, first at row \d+\.$",
    ),
    "truth of another width": (
        change(truth=lambda d: replace(d.truth, logging=d.truth.logging[:, 1:])),
        r"^truth: its tables must have one row a code and one column an action\.$",
    ),
    "truth beyond its table": (
        change(truth=lambda d: replace(d.truth, code=d.truth.code + 99)),
        r"^truth: codes must be in 0\.\.6; \d+ of \d+ rows fail, first at row 0\.$",
    ),
}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("case", BAD)
def test_bad_arrays_are_refused_by_place_rule_and_row(case):
    make, message = BAD[case]
    with pytest.raises(DataError, match=message):
        make(with_truth(BIG.make()))


def test_codes_that_do_not_point_into_the_table_are_refused():
    data = coded_data()
    for wrong in (-1, 3):
        code = data.sequence.code.copy()
        code[5] = wrong
        message = r"^sequence: codes must be in 0\.\.2; 1 of 6 rows fail, first at row 5\.$"
        with pytest.raises(DataError, match=message):
            replace(data, sequence=Coded(data.sequence.table, code))


def test_an_infinite_row_of_a_coded_table_is_refused():
    data = coded_data()
    table = data.sequence.table.copy()
    table[1, 1] = np.inf
    with pytest.raises(DataError, match=r"^sequence, feature b: must be finite; 1 of 3 rows fail"):
        replace(data, sequence=Coded(table, data.sequence.code))


def test_a_value_far_down_is_found_and_counted_from_the_top():
    values = np.zeros((70_000, 1), np.float32)
    values[66_000:66_002] = np.nan
    message = r"^sequence, feature x: must be finite; 2 of 70000 rows fail, first at row 66000\.$"
    with pytest.raises(DataError, match=message):
        Trajectories(values, np.array([0, 70_000]), Schema(sequence=("x",), n_actions=1))


def test_missing_values_pass_only_where_the_schema_says_so():
    schema = Schema(
        sequence=("x", "ward=icu", "y"),
        n_actions=1,
        indicators=("x", "ward"),
        categories={"ward": ("icu",)},
    )
    good = np.array([[np.nan, np.nan, 1.0]], np.float32)
    Trajectories(good, np.array([0, 1]), schema)
    for bad in ([[1, 1, np.nan]], [[np.inf, 1, 1]]):
        with pytest.raises(EtipsError, match=r"^sequence, feature [xy]: must be finite; 1 of 1"):
            Trajectories(np.array(bad, np.float32), np.array([0, 1]), schema)


def test_true_risk_is_the_mean_of_the_policys_expected_loss():
    data = with_truth(BIG.make())
    policy = np.random.default_rng(1).dirichlet(np.ones(data.n_actions), data.n_decisions)
    total = 0.0
    for number, row in enumerate(data.decision_rows):
        for action in range(data.n_actions):
            code = data.truth.code[row]
            total += policy[number, action] * data.truth.expected_loss[code, action]
    assert data.true_risk(policy) == pytest.approx(total / data.n_decisions, rel=1e-12)
    assert data.true_expected_loss().shape == data.true_logging().shape == policy.shape
    assert np.array_equal(
        data.true_logging(), data.truth.logging[data.truth.code[data.decision_rows]]
    )


def test_true_risk_refuses_another_shape_and_real_data():
    data = with_truth(BIG.make())
    with pytest.raises(DataError, match=r"^probabilities: must have one row a decision"):
        data.true_risk(np.ones((2, 2)))
    with pytest.raises(DataError, match=r"^truth: is known only in simulated data\.$"):
        replace(data, truth=None).true_risk(np.ones((2, 2)))
