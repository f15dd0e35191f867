"""The schema of a policy, read without opening its networks."""

import subprocess
import sys

import pytest
from small_worlds import ward

from etips.errors import FileError
from etips.learn import MostFrequent
from etips.policies.policy_files import save_policy
from etips.policies.policy_manifest import read_schema

DATA = ward()


@pytest.fixture
def folder(tmp_path):
    save_policy(MostFrequent().fit(DATA).policy_, tmp_path / "policy")
    return tmp_path / "policy"


def test_it_is_that_of_the_data_it_was_fitted_on(folder):
    assert read_schema(folder) == DATA.schema


def test_it_is_read_without_torch(folder):
    code = (
        "import sys; from pathlib import Path;"
        "from etips.policies.policy_manifest import read_schema;"
        f"read_schema(Path({str(folder)!r})); assert 'torch' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_folder_that_was_changed_or_is_none_is_refused(folder, tmp_path):
    with pytest.raises(FileError):
        read_schema(tmp_path / "none")
    (folder / "policy.json").write_text("{}")
    with pytest.raises(FileError, match=r"policy\.json"):
        read_schema(folder)
