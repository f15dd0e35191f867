"""A bench: every world, method and seed a task, resumable, and a failure is a line."""

from dataclasses import replace

import numpy as np
import pytest
from small_benches import small_plan

from etips.bench import bench_run, contest
from etips.bench.bench_run import choose_worlds, run_bench
from etips.bench.bench_worlds import BENCH_WORLDS, QUICK_WORLDS, TRIAL
from etips.errors import SettingError
from etips.learn.learners.baselines import MostFrequent
from etips.results.bench_result import Bench
from etips.results.parsing import from_json
from etips.runs.tasks import DONE, LostTaskError


def without_costs(bench):
    """What a bench found, but for what the machine was doing."""
    return [replace(e, seconds=None, processor=None, memory=None) for e in bench.entries]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    plan = small_plan(methods=("most-frequent", "random", "owl", "etips"), seeds=2)
    return plan, folder, run_bench(plan, folder)


def test_every_method_has_an_entry_at_every_seed_with_its_cost(small):
    _, _, bench = small
    assert len(bench.entries) == 8
    for entry in bench.entries:
        assert entry.failed is None
        assert 0 < entry.risk < 1
        assert entry.verdict in ("reliable", "doubtful", "unusable")
        assert entry.seconds > 0
        assert entry.memory is None or entry.memory > 10
    (own,) = bench.standings
    assert [row.risk for row in own.rows] == sorted(row.risk for row in own.rows)
    assert own.best < own.clinicians
    assert {row.n_seeds for row in own.rows} == {2}


def test_finished_tasks_are_not_done_again_and_a_lost_one_gives_the_same(small, monkeypatch):
    plan, folder, bench = small
    gone = folder / "tasks" / "clinic-usual-1-etips" / DONE
    gone.unlink()
    done = []
    original = contest.ContestTask.run

    def counted(self, place):
        done.append(self.method)
        return original(self, place)

    monkeypatch.setattr(contest.ContestTask, "run", counted)
    again = run_bench(plan, folder)
    assert done == ["etips"]
    assert without_costs(again) == without_costs(bench)


def test_two_processes_find_what_one_finds(small, tmp_path):
    plan, _, bench = small
    assert without_costs(run_bench(plan, tmp_path, jobs=2)) == without_costs(bench)


def test_a_method_that_fails_is_a_line_and_the_others_go_on(tmp_path, monkeypatch):
    def broken(self, stays, trainer):
        raise ZeroDivisionError("of this method")

    monkeypatch.setattr(MostFrequent, "_learn", broken)
    bench = run_bench(small_plan(), tmp_path)
    (own,) = bench.standings
    failed = own.row("most-frequent")
    assert (failed.place, failed.risk) == ("failed", None)
    assert failed.failed == "ZeroDivisionError: of this method"
    assert own.first == "random"
    assert own.best_of_ours is None


def test_results_are_read_back_as_they_were(small):
    _, _, bench = small
    assert from_json(Bench, bench.to_json()) == bench


def test_the_trial_is_a_world_only_where_its_file_is_given(tmp_path):
    assert [own.name for own in choose_worlds(None, None)] == [
        n for n in BENCH_WORLDS if n != TRIAL
    ]
    assert {own.name for own in choose_worlds(None, None, quick=True)} == set(QUICK_WORLDS)
    assert TRIAL in {own.name for own in choose_worlds(None, tmp_path, quick=True)}
    with pytest.raises(SettingError, match="--trial"):
        choose_worlds([TRIAL], None)
    with pytest.raises(SettingError, match="--worlds: must be some of"):
        choose_worlds(["nowhere"], None)


def test_a_smaller_run_says_its_size(small):
    plan, _, bench = small
    assert bench.lead.startswith("QUICK RUN")
    reduced = replace(plan, quick=False, stays=100)
    assert all(arena.n_learn == 100 for arena in reduced.arenas("clinic-usual"))
    assert all(reduced.settings_of(name) == {} for name in ("etips", "owl"))
    assert np.isfinite(bench.seconds)


def test_a_method_whose_process_is_lost_again_and_again_is_given_up(tmp_path, monkeypatch):
    original = bench_run.run_tasks

    def losing(tasks, *rest, **more):
        if any(own.name == "clinic-usual-0-random" for own in tasks):
            raise LostTaskError("clinic-usual-0-random")
        return original(tasks, *rest, **more)

    monkeypatch.setattr(bench_run, "run_tasks", losing)
    (own,) = run_bench(small_plan(), tmp_path).standings
    assert own.row("random").failed.startswith("its process was lost")
    assert own.first == "most-frequent"
