"""Where a run may be written: asked before anything is read or learned."""

import pytest

from etips.errors import FileError
from etips.files.lock import LOCK_NAME
from etips.runs.room import holds_policy, require_room


@pytest.fixture
def place(tmp_path):
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def test_there_is_room_where_nothing_is_or_where_a_run_was_stopped(place, tmp_path):
    require_room(tmp_path / "new", overwrite=False)
    require_room(place, overwrite=False)
    (place / LOCK_NAME).touch()
    require_room(place, overwrite=False)
    (place / "checkpoint").mkdir()
    (place / "log.jsonl").touch()
    require_room(place, overwrite=False)
    assert (place / "log.jsonl").exists()


def test_what_could_not_be_written_is_refused_before_the_work(place, tmp_path):
    with pytest.raises(FileError, match="must be a folder that exists"):
        require_room(tmp_path / "no" / "run", overwrite=True)
    (place / "thesis.tex").touch()
    with pytest.raises(FileError, match="exists already"):
        require_room(place, overwrite=False)
    with pytest.raises(FileError, match="is not a run folder, so it stays"):
        require_room(place, overwrite=True)
    (place / "policy").mkdir()
    (place / "policy" / "policy.json").touch()
    assert holds_policy(place)
    require_room(place, overwrite=True)
