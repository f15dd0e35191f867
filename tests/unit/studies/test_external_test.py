"""The policies of a study on another source."""

from types import SimpleNamespace

from etips.studies.external_test import COLUMNS, ExternalTest
from etips.worlds.two_hospitals import SECOND, simulate_place


def method(**gain):
    head = SimpleNamespace(risk=0.4, low=0.3, high=0.5)
    own = SimpleNamespace(**gain) if gain else None
    return SimpleNamespace(estimates=[head], gain=own, verdict="doubtful")


def test_a_policy_has_a_cell_for_each_column():
    test = ExternalTest(
        simulate_place(30, seed=1, place=SECOND),
        {"a": method(difference=-0.1, low=-0.2, high=0.0), "b": method()},
    )
    assert test.cells("a") == ["0.400 [0.300, 0.500]", "-0.100 [-0.200, +0.000]", "doubtful"]
    assert test.cells("b")[1] == "-"
    assert len(COLUMNS) == 3
    assert f"{test.data.n_decisions:,} decisions" in test.note
