"""Which candidate becomes the policy: hand-made ones, and a world with nothing to find."""

import numpy as np
from small_worlds import training

from etips.learn import TIPS
from etips.learn.fitting.candidates import LEAST_SIZE, Candidate
from etips.learn.learners.selection import choose
from etips.models.encoders.gru import GRU
from etips.worlds.clinic import Clinic


def rule(risk, *, error=0.01, factor=1.0, size=500.0, translation=0.5):
    return Candidate(translation, None, risk, error, factor, size)


def constant(risk, *, error=0.01, factor=1.0, size=500.0, action=0):
    return Candidate(np.nan, action, risk, error, factor, size)


def test_a_tiny_matching_factor_wins_by_the_paper_and_loses_by_what_was_held_out():
    candidates = [rule(0.50), rule(0.38, factor=0.1), constant(0.52)]
    assert choose(candidates, "paper") == 1
    assert choose(candidates, "held-out") == 0


def test_a_matching_factor_far_above_one_is_no_better():
    assert choose([rule(0.50), rule(0.38, factor=1.9)], "held-out") == 0


def test_a_risk_that_rests_on_few_decisions_is_not_believed():
    few = rule(0.1, size=LEAST_SIZE - 1)
    assert choose([rule(0.50), few], "held-out") == 0
    assert choose([rule(0.50), few], "paper") == 1


def test_of_two_equal_risks_the_better_known_wins():
    assert choose([rule(0.5, error=0.03), rule(0.5, error=0.01)], "held-out") == 1


def test_a_standard_error_can_outweigh_a_little_less_risk():
    assert choose([rule(0.49, error=0.05), rule(0.50, error=0.01)], "held-out") == 1


def test_the_best_constant_wins_if_no_rule_beats_it():
    candidates = [rule(0.50), constant(0.47, action=1), constant(0.55, action=2)]
    assert choose(candidates, "held-out") == 1


def test_the_paper_chooses_among_rules_only():
    assert choose([rule(0.50), constant(0.30)], "paper") == 0


def test_where_nothing_is_sound_the_best_supported_is_taken():
    candidates = [rule(0.3, factor=0.1, size=40), constant(0.6, factor=0.2, size=90)]
    assert choose(candidates, "held-out") == 1


def test_the_luckiest_of_many_small_equals_does_not_win():
    """Thirty arms of risk 0.5, known to 0.03 each: the lowest looks like 0.44, and is not."""
    arms = [constant(0.44, error=0.03), *[constant(0.5, error=0.03) for _ in range(29)]]
    assert choose([rule(0.495, error=0.005), *arms], "held-out") == 0
    assert choose([rule(0.495, error=0.005), constant(0.40, error=0.03)], "held-out") == 1


def test_the_first_of_equals_wins():
    assert choose([rule(0.5), rule(0.5)], "held-out") == 0
    assert choose([rule(0.5), rule(0.5)], "paper") == 0


def test_in_a_null_world_no_rule_is_believed_to_beat_every_constant():
    """All policies have the same risk: what is chosen must not claim otherwise beyond noise."""
    chosen = []
    for seed in range(4):
        log = Clinic(effect=0.0, decisions_per_stay=3, n_actions=3).log(300, seed=seed)
        learner = TIPS(
            translations=(0.3, 0.6, 0.9), encoder=GRU(8), training=training(4, 3), seed=seed
        ).fit(log)
        best = next(c for c in learner.path_ if c.chosen)
        constants = [c for c in learner.path_ if c.action is not None]
        assert len(constants) == 3
        lowest = min(constants, key=lambda c: c.risk)
        assert best.risk > lowest.risk - 2 * lowest.std_error
        chosen.append(best.action is not None)
    assert any(chosen)
