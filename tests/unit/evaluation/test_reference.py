"""S1: point estimates equal those of an independent implementation."""

import csv
from pathlib import Path

import numpy as np
import pytest
from reference.make_obp_reference import COLUMNS, N_LOGS, random_log

from etips.evaluation import dm, dr, dr_shrinkage, ips, sndr, snips, switch_dr, weigh

REFERENCE = Path(__file__).with_name("reference") / "obp.csv"


def estimate(log):
    rows = np.arange(log.loss.size)
    weight = weigh(log.probabilities, log.action, log.propensity)
    arrays = (log.loss, weight, rows)
    model = {
        "predicted": log.predicted[rows, log.action],
        "predicted_policy": (log.predicted * log.probabilities).sum(axis=1),
    }
    return {
        "inputs": log.total(),
        "ips": ips(*arrays).risk,
        "snips": snips(*arrays).risk,
        "dm": dm(model["predicted_policy"], rows).risk,
        "dr": dr(*arrays, **model).risk,
        "sndr": sndr(*arrays, **model).risk,
        "switch_dr": switch_dr(*arrays, **model, switch=log.switch).risk,
        "dr_shrinkage": dr_shrinkage(*arrays, **model, shrinkage=log.shrinkage).risk,
    }


def test_point_estimates_equal_those_of_obp_on_1000_random_logs_s1():
    with REFERENCE.open() as file:
        stored = list(csv.DictReader(file))
    assert len(stored) == N_LOGS
    for seed, row in enumerate(stored):
        found = estimate(random_log(seed))
        for name in COLUMNS:
            assert found[name] == pytest.approx(float(row[name]), rel=1e-12, abs=1e-15), (
                seed,
                name,
            )
