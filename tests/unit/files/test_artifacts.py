"""Artifacts: written with their manifest, replaced only by their like, sealed with one key."""

import errno
import json
import os
from pathlib import Path

import pytest
from artifacts_made import NEW, OLD, contents, names, save

from etips.errors import FileError
from etips.files.artifacts import read_artifact, require_place, seal
from etips.files.json_documents import canonical


def test_an_artifact_is_written_with_its_manifest_and_read_back(tmp_path):
    save(tmp_path / "x", OLD)
    assert read_artifact(tmp_path / "x", manifest_name="m.json") == {"n": 1}
    assert contents(tmp_path / "x") == OLD
    assert names(tmp_path) == ["x"]


def test_the_manifest_lists_the_sha256_and_size_of_every_file(tmp_path):
    save(tmp_path / "x", {"a.bin": b"abc"})
    document = json.loads((tmp_path / "x" / "m.json").read_bytes())
    # SHA-256 of "abc" as published in FIPS 180-2, appendix B.1.
    abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert document["files"] == {"a.bin": {"sha256": abc, "bytes": 3}}


def test_an_existing_place_is_refused_unless_overwriting_is_asked_for(tmp_path):
    save(tmp_path / "x", OLD)
    message = r"x: exists already\. Choose another place or overwrite\.$"
    with pytest.raises(FileError, match=message):
        save(tmp_path / "x", NEW)
    assert contents(tmp_path / "x") == OLD
    save(tmp_path / "x", NEW, overwrite=True)
    assert contents(tmp_path / "x") == NEW


@pytest.mark.parametrize("kind", ["empty folder", "folder of others", "file", "link", "dead link"])
def test_overwriting_never_removes_what_is_no_artifact(tmp_path, kind):
    save(tmp_path / "real", OLD)
    place = tmp_path / "x"
    if "folder" in kind:
        place.mkdir()
    if kind == "folder of others":
        (place / "thesis.txt").write_bytes(b"years of work")
    if kind == "file":
        place.write_bytes(b"years of work")
    if "link" in kind:
        place.symlink_to(tmp_path / ("real" if kind == "link" else "nowhere"))
    before = [(path, path.lstat().st_mtime_ns) for path in sorted(tmp_path.rglob("*"))]
    with pytest.raises(FileError, match=r"x: is not a folder with m\.json, so it stays\.$"):
        save(place, NEW, overwrite=True)
    assert [(path, path.lstat().st_mtime_ns) for path in sorted(tmp_path.rglob("*"))] == before


def test_a_file_that_may_not_be_read_is_refused_in_one_line(tmp_path, monkeypatch):
    save(tmp_path / "x", OLD)

    def forbidden(self, *_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    for method, name in (("read_bytes", "m.json"), ("open", "a.bin")):
        with monkeypatch.context() as patch:
            patch.setattr(Path, method, forbidden)
            if method == "open":
                patch.setattr(Path, "read_bytes", lambda p: os.read(os.open(p, 0), 10**6))
            with pytest.raises(FileError, match=rf"{name}: cannot be read: Permission denied\.$"):
                read_artifact(tmp_path / "x", manifest_name="m.json")


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("name", ["real", "letters", "link", "free", "no/free"])
def test_a_place_is_refused_in_advance_in_the_words_of_the_writing(tmp_path, name, overwrite):
    save(tmp_path / "real", OLD)
    (tmp_path / "letters").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    if name == "free" or (name == "real" and overwrite):
        require_place(tmp_path / name, manifest_name="m.json", overwrite=overwrite)
        save(tmp_path / name, NEW, overwrite=overwrite)
        return
    with pytest.raises(FileError) as early:
        require_place(tmp_path / name, manifest_name="m.json", overwrite=overwrite)
    with pytest.raises(FileError) as late:
        save(tmp_path / name, NEW, overwrite=overwrite)
    assert str(early.value) == str(late.value)


def test_f6_with_a_key_only_the_same_key_opens(tmp_path, monkeypatch):
    """F6: the key stands in ETIPS_SEAL_KEY; right, wrong, absent, and a key not in UTF-8."""
    changed = r"m\.json: was changed after it was written\. Make it anew\.$"
    kind = r"m\.json: was sealed with another kind of key; see ETIPS_SEAL_KEY\.$"
    for key in ("swordfish", b"\xff\xfe".decode(errors="surrogateescape")):
        monkeypatch.setenv("ETIPS_SEAL_KEY", key)
        save(tmp_path / "sealed", OLD, overwrite=(tmp_path / "sealed").exists())
        assert contents(tmp_path / "sealed") == OLD
        assert key.encode(errors="surrogateescape") not in (tmp_path / "sealed/m.json").read_bytes()
        monkeypatch.setenv("ETIPS_SEAL_KEY", "herring")
        with pytest.raises(FileError, match=changed):
            contents(tmp_path / "sealed")
        for nothing in ("", None):
            if nothing is None:
                monkeypatch.delenv("ETIPS_SEAL_KEY")
            else:
                monkeypatch.setenv("ETIPS_SEAL_KEY", nothing)
            with pytest.raises(FileError, match=kind):
                contents(tmp_path / "sealed")


def reseal(folder, change):
    path = folder / "m.json"
    document = json.loads(path.read_bytes())
    del document["seal"]
    change(document)
    path.write_bytes(canonical(seal(document)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("files"), r"m\.json: must list its files\.$"),
        (lambda d: d.update(files=[]), r"m\.json: must list its files\.$"),
        (lambda d: d["files"].update({"../a": 1}), r"\.\./a: is missing\.$"),
        (lambda d: d["files"].update({"a.bin": None}), r"a\.bin: was changed after it was written"),
        (lambda d: d["files"].pop("a.bin"), r"a\.bin: is not listed in the manifest\.$"),
    ],
)
def test_a_manifest_sealed_anew_cannot_reach_outside_nor_skip_a_file(tmp_path, change, message):
    save(tmp_path / "x", OLD)
    reseal(tmp_path / "x", change)
    with pytest.raises(FileError, match=message):
        contents(tmp_path / "x")


def deep(depth):
    return b'{"a": ' + b"[" * depth + b"]" * depth + b', "seal": "sha256:0"}'


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"[]",
        b"{}",
        b"nonsense",
        b"\xff\xfe\x00",
        b'{"seal": 1}',
        b'{"a": NaN, "seal": "sha256:0"}',
        b'{"a": 1e999, "seal": "sha256:0"}',
        b'{"a": ' + b"9" * 5000 + b', "seal": "sha256:0"}',
        b'{\n "seal": "sha256:\\u00e4"\n}\n',  # not ASCII, and spelt as we spell it
        *(deep(depth) for depth in (100, 900, 950, 960, 970, 980, 990, 1000, 5000, 100_000)),
    ],
    ids=lambda raw: raw[:12].decode(errors="replace") + str(len(raw)),
)
def test_a_manifest_that_is_none_is_refused_by_name(tmp_path, manifest):
    save(tmp_path / "x", OLD)
    (tmp_path / "x" / "m.json").write_bytes(manifest)
    with pytest.raises(FileError, match=r"m\.json: (is not|was changed|must)"):
        read_artifact(tmp_path / "x", manifest_name="m.json")
