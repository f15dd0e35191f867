"""What is asked of a world."""

from etips.worlds.simulation import Simulation


def test_a_world_is_asked_for_stays_and_the_rest_has_defaults():
    wanted = Simulation(5)
    assert (wanted.n_stays, wanted.seed, wanted.lag, wanted.logging) == (5, 0, 0, "sampled")
    assert wanted.progress("simulating", 0.5) is None
