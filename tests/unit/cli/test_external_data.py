"""A second source beside the data of a command."""

from types import SimpleNamespace

import pytest

from etips.cli.external_data import join_external, require_one_way
from etips.errors import FileError, SettingError
from etips.worlds.two_hospitals import SECOND, simulate_place


def test_sources_are_called_after_their_folders_or_their_places(tmp_path):
    first = simulate_place(15, seed=1)
    for name in ("here/log", "there/log", "other"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        simulate_place(15, seed=2, place=SECOND).save(tmp_path / name)
    asked = SimpleNamespace(data=tmp_path / "here/log", fitted={})
    joined, source, by = join_external(asked, first, tmp_path / "other", allow_seen=False)
    assert len(by["data"]) == joined.n_decisions
    assert set(source) == {"log", "other"}
    _, source, _ = join_external(asked, first, tmp_path / "there/log", allow_seen=False)
    assert set(source) == {str(tmp_path / "here/log"), str(tmp_path / "there/log")}
    with pytest.raises(FileError, match="must be a folder"):
        join_external(asked, first, tmp_path / "table.csv", allow_seen=False)


def test_without_a_second_source_all_stays_as_it_is(tmp_path):
    first = simulate_place(15, seed=1)
    assert join_external(None, first, None, allow_seen=False, places="ward") == (
        first,
        None,
        "ward",
    )
    with pytest.raises(SettingError, match="must not both"):
        require_one_way("ward", tmp_path)
    require_one_way("ward", None)
