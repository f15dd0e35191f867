"""Places: who is compared with whom, and by what."""

import numpy as np
import pyarrow as pa

from etips.data.tables.reading import read_table
from etips.evaluation.inference.intervals import DEFAULT
from etips.evaluation.log import Log
from etips.results.comparison_result import CLINICIANS
from etips.results.decision_groups import group_decisions
from etips.results.place_comparison import case_mix_rows, compare_places


def hospital(n, places, seed=0):
    rng = np.random.default_rng(seed)
    site = rng.integers(0, places, n)
    log = pa.table(
        {
            "stay": range(n),
            "t": [0] * n,
            "dose": rng.integers(0, 2, n),
            "loss": (rng.random(n) < 0.3).astype(float),
            "x": rng.normal(size=n),
            "site": [f"s{i}" for i in site],
        }
    )
    roles = {"stay": "stay", "step": "t", "action": "dose", "loss": "loss", "lag": 0}
    return read_table(log, **roles, categorical=["site"])


def compared(data, **more):
    log = Log.of(data, propensities=np.full((data.n_decisions, 2), 0.5), known=True)
    return compare_places(
        data, log, {}, group_decisions(data, "site"), estimator="snips", interval=DEFAULT, **more
    )


def test_up_to_four_places_each_is_held_against_each_and_beyond_all_against_one():
    three = compared(hospital(600, 3))
    assert len(three.overlaps) == 6
    six = compared(hospital(900, 6))
    assert len(six.overlaps) == 5
    assert len({own.target for own in six.overlaps}) == 1
    one = compared(hospital(600, 3), target="s1")
    assert {own.target for own in one.overlaps} == {"s1"}


def test_the_place_itself_is_no_part_of_the_case_mix():
    data = hospital(400, 2)
    rows = case_mix_rows(data, "site")
    assert rows.shape[1] == case_mix_rows(data, "somewhere else").shape[1] - 2
    places = compared(data)
    assert all(own.discrimination < 0.6 for own in places.overlaps)
    assert all(own.policy == CLINICIANS for own in places.carried)
