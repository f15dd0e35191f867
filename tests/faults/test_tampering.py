"""F6: no byte of a saved artifact changes unseen."""

import os
import shutil

import numpy as np
import pytest
from random_cohorts import Cohort

from etips.data import Schema, Trajectories, load_trajectories
from etips.errors import FileError

FILES = ["schema.json", "stays.parquet", "steps.parquet"]


@pytest.fixture(scope="module")
def artifact(tmp_path_factory):
    folder = tmp_path_factory.mktemp("artifact") / "x"
    Trajectories(
        sequence=np.array([[1.5], [2.5]], np.float32),
        offsets=np.array([0, 2]),
        schema=Schema(sequence=("x",), n_actions=2, lag=0),
        action=np.array([0, 1]),
        loss=np.array([0.0, 1.0]),
    ).save(folder)
    assert sorted(path.name for path in folder.iterdir()) == FILES
    return folder


@pytest.fixture
def copy(artifact, tmp_path):
    return shutil.copytree(artifact, tmp_path / "copy")


def refused(folder, name):
    """Whether loading is refused in one line that names the file."""
    try:
        load_trajectories(folder)
    except FileError as error:
        return f"{folder.name}/{name}: " in str(error) and len(str(error).splitlines()) == 1
    return False


# Every byte of the two smaller files; of the largest every third, to stay within seconds.
EVERY = {"schema.json": 1, "stays.parquet": 1, "steps.parquet": 3}


@pytest.mark.parametrize("name", FILES)
def test_f6_a_changed_byte_is_refused_by_the_files_name(copy, name):
    """F6: one bit of it turned."""
    path = copy / name
    whole = path.read_bytes()
    for place in range(0, len(whole), EVERY[name]):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        path.write_bytes(changed)
        assert refused(copy, name), place
    path.write_bytes(whole)
    load_trajectories(copy)


@pytest.mark.parametrize("name", FILES)
def test_f6_a_truncated_file_is_refused_by_its_name(copy, name):
    """F6: every length, down to nothing; and one byte more."""
    path = copy / name
    whole = path.read_bytes()
    for length in range(0, len(whole), EVERY[name]):
        path.write_bytes(whole[:length])
        assert refused(copy, name), length
    path.write_bytes(whole + b"\n")
    assert refused(copy, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_f6_every_bit_of_every_file_is_watched(copy, name):
    """F6, all: every bit of every byte, and every length."""
    path = copy / name
    whole = path.read_bytes()
    for place in range(len(whole)):
        for bit in range(8):
            changed = bytearray(whole)
            changed[place] ^= 1 << bit
            path.write_bytes(changed)
            assert refused(copy, name), (place, bit)
        path.write_bytes(whole[:place])
        assert refused(copy, name), place


def test_f6_swapped_files_are_refused(copy):
    """F6: steps in the place of stays, and the other way round."""
    steps, stays, aside = (copy / name for name in ("steps.parquet", "stays.parquet", "aside"))
    steps.rename(aside)
    stays.rename(steps)
    aside.rename(stays)
    assert refused(copy, "stays.parquet") or refused(copy, "steps.parquet")


@pytest.mark.parametrize("name", FILES)
def test_f6_a_file_of_another_artifact_is_refused(copy, tmp_path, name):
    """F6: each is whole in itself, but they do not belong together."""
    Cohort(seed=1).make().save(tmp_path / "other")
    shutil.copyfile(tmp_path / "other" / name, copy / name)
    with pytest.raises(FileError, match=r"\.(parquet|json): was changed after it was written"):
        load_trajectories(copy)


@pytest.mark.parametrize("name", ["extra.txt", ".hidden", "steps.parquet.bak", "folder"])
def test_f6_an_extra_file_is_refused_by_name(copy, name):
    """F6: also a hidden one, also a folder."""
    (copy / name).mkdir() if name == "folder" else (copy / name).write_bytes(b"")
    with pytest.raises(FileError, match=rf"{name}: is not listed in the manifest\.$"):
        load_trajectories(copy)


@pytest.mark.parametrize("name", FILES)
def test_f6_a_missing_file_is_refused_by_name(copy, name):
    """F6: the manifest too."""
    (copy / name).unlink()
    with pytest.raises(FileError, match=rf"{name}: is missing\.$"):
        load_trajectories(copy)


@pytest.mark.parametrize("name", FILES)
def test_f6_a_link_is_refused_though_it_leads_to_the_same_bytes(copy, artifact, name):
    """F6: a link may lead elsewhere tomorrow."""
    (copy / name).unlink()
    (copy / name).symlink_to(artifact / name)
    with pytest.raises(FileError, match=rf"{name}: must be a plain file, not a link\.$"):
        load_trajectories(copy)


@pytest.mark.parametrize("name", FILES)
def test_f6_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(copy, name):
    """F6: opening it would wait for ever."""
    (copy / name).unlink()
    os.mkfifo(copy / name)
    with pytest.raises(FileError, match=rf"{name}: must be a plain file, not a link\.$"):
        load_trajectories(copy)


def test_f6_a_folder_in_the_place_of_a_file_is_refused(copy):
    """F6."""
    (copy / "steps.parquet").unlink()
    (copy / "steps.parquet").mkdir()
    with pytest.raises(FileError, match=r"steps\.parquet: must be a plain file, not a link\.$"):
        load_trajectories(copy)


def test_f6_a_linked_folder_is_refused(artifact, tmp_path):
    """F6: the artifact itself."""
    (tmp_path / "link").symlink_to(artifact)
    with pytest.raises(FileError, match=r"link: must be a folder\.$"):
        load_trajectories(tmp_path / "link")


def test_a_place_where_nothing_is_is_refused(tmp_path):
    with pytest.raises(FileError, match=r"nowhere: must be a folder\.$"):
        load_trajectories(tmp_path / "nowhere")
