"""How far a study is, and how long it may take."""

from etips.tasks import time_left
from etips.tasks.time_left import StudyProgress, TaskProgress


def test_time_left_is_guessed_from_what_tasks_cost(monkeypatch):
    told, clock = [], iter([0.0, 30.0, 60.0])
    monkeypatch.setattr(time_left.time, "perf_counter", lambda: next(clock))
    tell = StudyProgress(lambda what, share: told.append((what, share))).between(0.0, 0.5)
    tell("a", 0.0)
    tell("about 5 s left", 0.5)
    tell("b; about 5 s left", 1.0)
    assert told == [("a", 0.0), ("about 90 s left", 0.25), ("b; about 60 s left", 0.5)]


def test_cheap_tasks_move_the_bar_as_little_as_the_guess():
    told = []
    progress = TaskProgress(10.0, lambda what, share: told.append((what, share)))
    progress.done("cheap", 0.1, 1.0)
    progress.began("dear")
    progress.done("dear", 9.9, 500.0)
    assert told == [
        ("about 100 s left", 0.01),
        ("dear; about 100 s left", 0.01),
        ("", 1.0),
    ]


def test_many_tasks_at_work_are_counted():
    told = []
    progress = TaskProgress(5.0, lambda what, share: told.append(what))
    for name in "abcde":
        progress.began(name)
    assert told[-1] == "a, b, c and 2 more"


def test_what_was_expected_counts_until_tasks_have_shown_the_pace(monkeypatch):
    told, now = [], [0.0]
    monkeypatch.setattr(time_left.time, "perf_counter", lambda: now[0])
    study = StudyProgress(lambda what, share: told.append(what))
    study.expect(1000.0)
    tell = study.between(0.0, 1.0)
    for moment, share in ((0.0, 0.0), (100.0, 0.05), (200.0, 0.2), (500.0, 0.5)):
        now[0] = moment
        tell("a", share)
    # At half of the trusted share the pace (800 s) and what was expected (800 s) count alike.
    assert told == [
        "a; about 17 min left",
        "a; about 17 min left",
        "a; about 13 min left",
        "a; about 8 min left",
    ]
