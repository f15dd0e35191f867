"""A bench: every world, method and seed a task, resumable; who is first, level or behind."""

from dataclasses import replace

import numpy as np
import pytest
from small_benches import small_plan

from etips.bench import bench_run, contest
from etips.bench.bench_run import choose_worlds, run_bench
from etips.bench.bench_worlds import BENCH_WORLDS, QUICK_WORLDS, TRIAL, Arena
from etips.bench.standings import Contestant, difference, stand
from etips.errors import SettingError
from etips.learn.learners.baselines import MostFrequent
from etips.results.bench_result import Bench, BenchEntry
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


COUNT = np.full(4, 2.0)


def losses(*totals):
    return np.stack([np.array(totals, float), COUNT])


def test_a_difference_is_paired_and_its_error_the_larger_of_two():
    known = {("a", 0): losses(1, 1, 1, 1), ("b", 0): losses(1, 2, 1, 2)}
    gap, error = difference(known, "b", "a")
    assert gap == pytest.approx(0.25)
    assert error == pytest.approx(np.sqrt(4 * 0.25 * 4 / 3) / 8)
    known |= {("a", 1): losses(1, 1, 1, 1), ("b", 1): losses(2, 2, 2, 2)}
    gap, error = difference(known, "b", "a")
    assert gap == pytest.approx(0.375)
    assert error == pytest.approx(0.125)  # over two seeds: 0.25 and 0.5
    assert difference(known, "a", "a") == (0.0, 0.0)
    assert difference(known, "c", "a") == (None, None)


def entry(method, risk, seed=0, **more):
    return BenchEntry("clinic-usual", method, seed, risk=risk, verdict="doubtful", **more)


def standing(*people, **told):
    contestants = [Contestant(name, name, "", group) for name, group, *_ in people]
    entries = [entry(name, risk, **told.get(name, {})) for name, _, risk, *_ in people]
    known = {(name, 0): losses(*totals) for name, _, risk, totals in people if risk is not None}
    arenas = [Arena("clinic-usual", 100, 4, 0)]
    ground = {"clinicians": 0.9, "best": 0.1, "clinicians_stay": None}
    return stand(arenas, [ground], entries, known, contestants)


def test_first_level_behind_and_who_was_told_or_failed():
    own = standing(
        ("told", "told", 0.1, (0.2, 0.2, 0.2, 0.2)),
        ("best", "peer", 0.5, (1, 1, 1, 1)),
        ("near", "ours", 0.52, (1, 2, 1, 0.16)),
        ("far", "ours", 0.75, (1, 2, 1, 2)),
        ("lost", "ours", None, ()),
        lost={"failed": "why"},
    )
    assert [row.place for row in own.rows] == ["told", "first", "level", "behind", "failed"]
    assert (own.first, own.best_of_ours, own.ours_level) == ("best", "near", True)
    assert own.row("lost").failed == "why"
    assert own.why == ()


def test_where_ours_is_behind_the_entries_say_why():
    own = standing(
        ("bold", "peer", 0.5, (1, 1, 1, 1)),
        ("careful", "ours", 0.75, (1.5, 1.6, 1.5, 1.4)),
        bold={"rare": 0.4},
        careful={"rare": 0.0},
    )
    assert own.ours_level is False
    assert "bold takes an action that clinicians take in under 5 %" in own.why[0]
    assert "reliable at 0 of 1 seeds" in own.why[1]
