"""One training of a run: when its state is kept, and what it tells."""

import pytest
import torch
from run_states import SETTINGS, after, at

from etips.runs import stage as stages
from etips.runs.run import Run


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves, and a count of what is saved, each taking `cost` seconds."""

    class Clock:
        now, cost, saved = 0.0, 0.0, 0

        def monotonic(self):
            return self.now

    made, real = Clock(), stages.save_state

    def save(*arguments):
        made.now += made.cost
        made.saved += 1
        real(*arguments)

    monkeypatch.setattr(stages, "time", made)
    monkeypatch.setattr(stages, "save_state", save)
    return made


def test_within_an_epoch_a_state_is_kept_when_ten_seconds_have_passed(folder, start, clock):
    with Run(folder, "id") as run:
        stage = run.stage("propensity", start, SETTINGS)
        saved = []
        for second in range(25):
            clock.now = second
            stage.keep(at(start))
            saved.append(clock.saved)
    assert saved == [0] * 10 + [1] * 10 + [2] * 5


def test_with_an_interval_of_zero_every_batch_is_kept(folder, start, clock):
    with Run(folder, "id", every=0) as run:
        stage = run.stage("propensity", start, SETTINGS)
        for _ in range(3):
            stage.keep(at(start))
    assert clock.saved == 3


def test_the_end_of_an_epoch_is_kept_unless_saving_would_cost_more_than_it_may(
    folder, start, clock
):
    """A twentieth of a second to save is worth it after two and a half seconds, not before."""
    clock.cost = 0.05
    with Run(folder, "id") as run:
        stage = run.stage("propensity", start, SETTINGS)
        stage.keep(at(start, epoch=1, batch=0))
        assert clock.saved == 1
        clock.now = 2.5
        stage.keep(at(start, epoch=2, batch=0))
        assert clock.saved == 1
        clock.now = 2.6
        stage.keep(at(start, epoch=2, batch=1))
        assert clock.saved == 1
        stage.keep(at(start, epoch=3, batch=0))
        assert clock.saved == 2


def test_best_networks_that_are_not_finite_do_not_replace_what_was_kept(folder, start):
    with Run(folder, "id", every=0) as run:
        stage = run.stage("propensity", start, SETTINGS)
        stage.keep(at(start, batch=1))
        broken = at(start, batch=2)
        broken.best["head.bias"][:] = torch.nan
        stage.keep(broken)
        assert run.stage("propensity", start, SETTINGS).state.batch == 1


def test_a_stage_tells_its_name_even_where_only_the_log_listens(folder, start):
    told = []
    with Run(folder, "id") as run:
        run.stage("policy", start, SETTINGS).reporting(told.append)(after(1, "", 0.5))
        run.stage("outcome", start, SETTINGS).reporting(None)(after(1, "", 0.5))
    assert told == [after(1, "policy", 0.5)]
    assert (folder / "log.jsonl").read_text().count("outcome") == 1
