"""The floor on support: lowered where it would leave nothing to recommend."""

from types import SimpleNamespace

import numpy as np
import pytest

from etips.learn.nuisance import support
from etips.learn.nuisance.support import MARGIN, SUPPORT, agreed_floor, bearable
from etips.learn.training.settings import Settings


def test_a_floor_that_leaves_an_action_nearly_everywhere_stays():
    likely = np.tile([0.9, 0.06, 0.04], (100, 1))
    likely[:5] = 1 / 3  # below the floor asked for, but few
    assert bearable(0.5, likely) == 0.5


@pytest.mark.parametrize("n_actions", [12, 25, 200])
@pytest.mark.parametrize("lag", [0, 1])
def test_many_even_actions_lower_the_floor_until_some_can_be_recommended(n_actions, lag):
    likely = np.full((50, n_actions), 1 / n_actions)
    floor = bearable(SUPPORT[lag], likely)
    assert MARGIN * floor <= 1 / n_actions
    assert floor == SUPPORT[lag] or 2 * MARGIN * floor > 1 / n_actions


def test_a_floor_that_the_policy_meets_as_judged_stays():
    likely = np.linspace(0, 1, 100)
    assert agreed_floor(0.3, likely, likely >= 0.3) == 0.3
    assert agreed_floor(0.3, likely + 0.1, likely >= 0.3) == 0.3  # abstains less often


def test_a_floor_is_lowered_until_the_policy_abstains_as_often_as_judged():
    likely = np.linspace(0, 1, 1000)
    found = agreed_floor(0.3, likely - 0.1, likely >= 0.3)
    assert (likely - 0.1 < found).mean() == pytest.approx(0.3, abs=0.01)


def test_no_floor_is_left_that_everybody_misses_by_a_hair():
    """Judged just above the floor, applied just below it: the policy abstained everywhere."""
    found = agreed_floor(0.0125, np.full(50, 0.0124999), np.ones(50, bool))
    assert found < 0.0124999


class Asked:
    """Stands in for the pilots: says which were trained, and that one of them leads by so much."""

    def __init__(self, *leads):
        self.leads, self.trained = list(leads), []

    def pilots(self, _prepared, _start, chance, look, _above):
        self.trained.append((look.stage, look.settings.epochs, look.n_batches))
        return np.ones_like(chance), np.ones_like(chance)
        yield

    def lead(self, *_, least):
        assert least == pytest.approx(1.0)  # a tenth of what ten equal weights come to
        return self.leads.pop(0)


def choose(monkeypatch, asked, n_stays, batch_size=256):
    monkeypatch.setattr(support, "_pilots", asked.pilots)
    monkeypatch.setattr(support, "_lead", asked.lead)
    data = SimpleNamespace(lag=0, n_stays=n_stays, logged_action=np.zeros(10, int))
    likely = np.log(np.tile([0.97, 0.03], (10, 1)))
    found = SimpleNamespace(log_probabilities=likely)
    settings = Settings(epochs=20, batch_size=batch_size)
    work = support.choose_support(
        SimpleNamespace(data=data), found, None, np.full(10, 0.5), settings
    )
    with pytest.raises(StopIteration) as end:
        next(work)
    return end.value.value


LOOKS = [("pilot", 1, 60), ("pilot-again", 3, None), ("pilot-long", 8, None)]


@pytest.mark.parametrize(
    ("leads", "floor", "trained"),
    [
        ([-0.5], 0.05, LOOKS[:1]),
        ([9.0, 9.0], 0.0, LOOKS[:2]),  # the first look cannot lift the floor
        ([9.0, -np.inf], 0.05, LOOKS[:2]),
        ([2.0, 2.0, 9.0], 0.0, LOOKS),
        ([3.9, 3.9, 3.9], 0.05, LOOKS),
    ],
)
def test_longer_pilots_are_trained_only_where_short_ones_leave_it_open(
    monkeypatch, leads, floor, trained
):
    asked = Asked(*leads)
    assert choose(monkeypatch, asked, n_stays=16_000) == floor
    assert asked.trained == trained


def test_few_stays_have_one_look_at_long_pilots(monkeypatch):
    asked = Asked(2.0)
    assert choose(monkeypatch, asked, n_stays=1_000) == 0.05
    assert asked.trained == [("pilot", 8, None)]


def test_some_stays_have_two_looks_of_whole_epochs(monkeypatch):
    asked = Asked(2.0, 9.0)
    assert choose(monkeypatch, asked, n_stays=4_000) == 0.0
    assert asked.trained == [("pilot", 4, None), ("pilot-again", 8, None)]
