"""Which settings to try next: the same whenever and wherever the search was stopped."""

import json
import math
import sqlite3
from contextlib import closing

import pytest
from small_searches import TINY

from etips.errors import FileError
from etips.studies.proposals import importance, open_proposals
from etips.studies.space import first_trial


def propose(path, numbers, tell=(), seed=0):
    with open_proposals(path, TINY, method="etips", identity="x", seed=seed) as proposals:
        found = [proposals.settings(number) for number in numbers]
        proposals.tell(dict(tell))
    return found


def test_proposals_are_the_same_in_one_go_and_in_pieces(tmp_path):
    values = [(number, abs(number - 5.0)) for number in range(10)]  # by chance until ten are told
    whole = propose(tmp_path / "a.db", range(10), values)
    whole += propose(tmp_path / "a.db", range(10, 12))
    path = tmp_path / "b.db"
    pieces = [*propose(path, range(5)), *propose(path, range(5, 10), values[:7])]
    propose(path, [9], values[7:])  # killed while it was telling
    pieces += propose(path, range(10, 12))
    assert pieces == whole
    with closing(sqlite3.connect(path)) as database, database:  # killed while it was proposing
        database.execute("DELETE FROM trial_params WHERE param_name = 'encoder' AND trial_id > 10")
    assert propose(path, range(10, 12)) == whole[10:]
    assert len({json.dumps(settings) for settings in whole}) == 12


def test_the_seed_and_what_was_told_change_the_proposals(tmp_path):
    up, down = ([(n, sign * float(n)) for n in range(10)] for sign in (1, -1))
    settings = propose(tmp_path / "a.db", range(10), up)
    propose(tmp_path / "b.db", range(10), down)
    assert propose(tmp_path / "a.db", [10]) != propose(tmp_path / "b.db", [10])
    others = propose(tmp_path / "c.db", range(3), seed=1)
    assert settings[0] == others[0] == first_trial(TINY, "etips")
    assert settings[1:3] != others[1:]


def test_a_file_that_is_no_search_is_refused(tmp_path):
    (tmp_path / "a.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(FileError, match=r"a\.db: cannot be used as a search's file"):
        propose(tmp_path / "a.db", [0])


def test_f9_a_search_is_for_its_owners_eyes_whatever_its_name(tmp_path):
    """F9: files 0600; and a name that would mean something in an address means nothing here."""
    path = tmp_path / "what? 100%#.db"
    propose(path, [0])
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert path.stat().st_mode & 0o777 == 0o600


def test_importance_finds_what_matters_and_says_nothing_of_few_trials():
    trials = [
        ({"learning_rate": rate, "encoder": kind}, abs(math.log(rate / 0.01)))
        for rate in (1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2)
        for kind in ("gru", "lstm")
    ]
    shares = importance(trials, TINY)
    assert list(shares) == ["learning_rate", "encoder"]
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["learning_rate"] > 0.7
    assert importance(trials[:7], TINY) == {}
