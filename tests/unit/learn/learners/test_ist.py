"""The International Stroke Trial: six arms at known odds, and next to nothing to individualise.

Looked for in the folder named by ETIPS_IST, or in `shared/data/ist` beside the repository; the data
may not be copied here.
"""

import csv
import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from small_worlds import training

from etips.data.splitting import split
from etips.data.tables.arrays import from_arrays
from etips.evaluation import snips
from etips.learn import TIPS, EtIPS
from etips.models.encoders.gru import GRU

BESIDE = Path(__file__).parents[5] / "shared" / "data" / "ist"
FILE = Path(os.environ.get("ETIPS_IST", BESIDE)) / "IST.csv.gz"

pytestmark = pytest.mark.skipif(
    not FILE.is_file(), reason="no IST.csv.gz beside the repository or in the folder ETIPS_IST"
)

HEPARIN = {"N": 0, "L": 1, "M": 2, "H": 2}
DEAD_OR_DEPENDENT = ("1", "2")


@pytest.fixture(scope="module")
def trial():
    """Baseline of 19,435 patients as a 2-D array, arm, outcome, and the odds of the design."""
    with gzip.open(FILE, "rt", encoding="latin-1") as file:
        rows = list(csv.DictReader(file))
    features = np.array(
        [
            [
                *(float(r[name]) for name in ("AGE", "RSBP", "RDELAY")),
                *(r["SEX"] == "M", r["RCONSC"] != "F", r["RATRIAL"] == "Y"),
                *(r["STYPE"] == "TACS", r["STYPE"] == "LACS"),
            ]
            for r in rows
        ]
    )
    arm = np.array([3 * (r["RXASP"] == "Y") + HEPARIN[r["RXHEP"]] for r in rows])
    loss = np.array([r["OCCODE"] in DEAD_OR_DEPENDENT for r in rows], float)
    return features, arm, loss, np.where(arm % 3 == 0, 1 / 4, 1 / 8)


def risk_of(probabilities, data):
    taken = probabilities[np.arange(data.n_decisions), data.logged_action]
    return snips(data.logged_loss, taken / data.logged_propensity, data.decisions().stay)


def test_the_trial_is_the_published_one(trial):
    features, arm, loss, propensity = trial
    assert features.shape == (19_435, 8)
    shares = np.bincount(arm) / arm.size
    assert shares == pytest.approx([1 / 4, 1 / 8, 1 / 8] * 2, abs=0.002)
    assert loss.mean() == pytest.approx(0.624, abs=0.001)
    assert (1 / propensity).mean() == pytest.approx(6, abs=0.05)


@pytest.mark.parametrize("learner", [TIPS, EtIPS])
def test_what_is_learned_is_not_beaten_beyond_noise_by_the_same_arm_for_everybody(learner, trial):
    features, arm, loss, propensity = trial
    data = from_arrays(features, arm, loss, propensity=propensity)
    train, test = split(data, test=0.5, seed=0)
    policy = learner(
        translations=(0.4, 0.6, 0.8), encoder=GRU(8), training=training(4, 3), seed=0
    ).fit(train)
    found = risk_of(policy.predict_proba(test), test)
    constants = [risk_of(np.eye(6)[np.full(test.n_decisions, arm)], test) for arm in range(6)]
    best = min(constants, key=lambda estimate: estimate.risk)
    noise = np.hypot(found.std_error, best.std_error)
    assert found.risk < best.risk + 3 * noise  # three, since the best of six is lucky
    assert not policy.abstains(test).any()


def test_a_trial_goes_in_as_plain_arrays(trial):
    features, arm, loss, propensity = (values[:2000] for values in trial)
    policy = TIPS(translations=(0.6,), encoder=GRU(6), training=training(2, 2))
    policy.fit(features, arm, loss, propensity=propensity)
    assert policy.predict_proba(features).shape == (2000, 6)
    assert policy.predict(features[:3]).shape == (3,)
