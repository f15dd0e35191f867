"""How a training stands after an epoch."""

import math
from dataclasses import replace

from etips.learn.training.epoch_report import EpochReport

REPORT = EpochReport(3, 12, loss=0.5, held_out=math.inf, seconds_left=7.4, stage="policy")


def test_it_says_what_is_known_by_name():
    assert REPORT.to_json() == {
        "stage": "policy",
        "epoch": 3,
        "epochs": 12,
        "loss": 0.5,
        "held_out": math.inf,
        "seconds_left": 7.4,
    }


def test_a_policy_has_a_matching_factor_even_if_it_is_zero():
    assert replace(REPORT, matching_factor=0.0).to_json()["matching_factor"] == 0.0
