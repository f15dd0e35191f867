"""The seal of an artifact's manifest: one spelling, one key, and nothing else opens."""

import json

import pytest
from artifacts_made import OLD, contents, save

from etips.errors import FileError
from etips.files.writing import canonical, read_artifact, seal


def test_there_is_one_spelling_of_a_document():
    assert canonical({"b": 1, "a": "ä"}) == b'{\n "a": "\\u00e4",\n "b": 1\n}\n'
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical({"a": float("nan")})


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


def test_f6_with_a_key_an_artifact_sealed_without_is_refused(tmp_path, monkeypatch):
    """F6: otherwise whoever changes a file could seal it anew."""
    save(tmp_path / "x", OLD)
    monkeypatch.setenv("ETIPS_SEAL_KEY", "swordfish")
    with pytest.raises(FileError, match=r"m\.json: was sealed with another kind of key"):
        contents(tmp_path / "x")


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


def test_a_manifest_too_large_to_be_one_is_not_even_read(tmp_path):
    save(tmp_path / "x", OLD)
    with (tmp_path / "x" / "m.json").open("wb") as file:
        file.truncate(17 * 2**20)
    with pytest.raises(FileError, match=r"m\.json: is too large for a manifest\.$"):
        contents(tmp_path / "x")
