import pytest
from served_runs import fitted, ward

from etips.errors import FileError
from etips.policies.policy_files import save_policy
from etips.serve.desk import open_desk


def test_a_desk_is_opened_from_a_folder_with_or_without_stays(tmp_path):
    save_policy(fitted(), tmp_path / "run")
    own = open_desk(tmp_path / "run", None, key=b"key")
    assert (own.stays, own.record.results, own.record.name) == (None, None, "run")
    own = open_desk(tmp_path / "run", ward(5), key=b"key")
    assert len(own.stays.rows) == 5


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FileError):
            open_desk(place, None, key=b"key")
