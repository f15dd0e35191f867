"""What a simulated hospital charts."""

import numpy as np

from etips.worlds.mimic3_charts import chartevents, labevents
from etips.worlds.mimic3_stays import DAY, simulate_stays

STAYS = simulate_stays(np.random.default_rng(2), first=0, n_stays=60)


def test_each_stay_is_charted_in_one_system():
    rows = chartevents(np.random.default_rng(0), STAYS).drop_nulls("icustay_id")
    systems = dict(zip(STAYS.stay, STAYS.metavision, strict=True))
    metavision = [systems[stay] for stay in rows["icustay_id"]]
    assert ((rows["itemid"] >= 220_000).to_numpy() == np.array(metavision)).all()


def test_charts_have_outliers_errors_and_rows_without_a_stay():
    rows = chartevents(np.random.default_rng(0), STAYS)
    assert (rows["valuenum"].drop_nulls() > 5_000).any()
    assert 0 < rows["error"].sum() < rows.height / 100
    assert 0 < rows["icustay_id"].null_count() < rows.height / 100
    assert {"Ventilator", "Nasal Cannula"} <= set(rows["value"])


def test_results_are_from_near_the_stay_and_some_are_missing():
    rows = labevents(np.random.default_rng(0), STAYS)
    starts = dict(zip(STAYS.admission, STAYS.start, strict=True))
    assert 0 < rows["valuenum"].null_count() < rows.height / 20
    early = [t - starts[a] for a, t in rows.select("hadm_id", "charttime").rows()]
    assert min(early) < 0
    assert max(early) < 14 * DAY
