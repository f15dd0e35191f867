"""Section 19: whole patients are held out, chosen by a seed."""

from dataclasses import replace

import polars as pl

from etips.cohorts.dataset.split import training_stays
from etips.cohorts.sepsis3.rules import PAPER

STAYS = pl.DataFrame({"stay": range(40), "patient": [number // 2 for number in range(40)]})


def test_a_share_of_the_patients_is_held_out_with_all_their_stays():
    held_out = set(range(40)) - training_stays(STAYS, replace(PAPER, test_share=0.25))
    assert len(held_out) == 10
    assert {stay ^ 1 for stay in held_out} == held_out


def test_the_seed_chooses_and_the_order_of_the_rows_does_not():
    assert training_stays(STAYS, PAPER) == training_stays(STAYS[::-1], PAPER)
    assert training_stays(STAYS, PAPER) != training_stays(STAYS, replace(PAPER, split_seed=1))


def test_without_a_share_everybody_is_trained_on():
    assert len(training_stays(STAYS, replace(PAPER, test_share=0.0))) == 40
