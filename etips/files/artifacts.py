"""Artifacts: folders that cannot change unseen.

The manifest lists every other file with its SHA-256 and carries a seal over itself.
"""

import hashlib
import hmac
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from etips.errors import FileError
from etips.files.json_documents import canonical
from etips.files.writing import (
    Content,
    fill_file,
    folder_made_whole,
    refusing,
    require_parent,
    sweep,
)

KEY_VARIABLE = "ETIPS_SEAL_KEY"
"""Environment variable with a secret; if set, artifacts are sealed with it and only such load."""

_MANIFEST_LIMIT = 16 * 2**20  # a manifest is names and hashes; more than this is an attack
_BLOCK = 2**20


def write_artifact(
    folder: Path,
    files: Mapping[str, Content],
    manifest: Mapping[str, object],
    *,
    manifest_name: str,
    overwrite: bool = False,
) -> None:
    """Write a folder of files and their sealed manifest, all or nothing.

    Args:
        manifest: What else the manifest says; `files` and `seal` are added.
        overwrite: Replace an earlier artifact; any other existing path is refused.
    """
    require_place(folder, manifest_name=manifest_name, overwrite=overwrite)
    with folder_made_whole(folder) as temporary:
        for name, content in files.items():
            fill_file(temporary / name, content)
        listed = {name: _fingerprint(temporary / name) for name in files}
        document = seal({**manifest, "files": listed})
        fill_file(temporary / manifest_name, canonical(document))


def require_place(folder: Path, *, manifest_name: str, overwrite: bool) -> None:
    """Refuse a place that `write_artifact` would refuse; ask before hours of work, not after."""
    require_parent(folder)
    if not folder.is_symlink() and not folder.exists():
        return
    if not overwrite:
        raise FileError(str(folder), "exists already", fix="Choose another place or overwrite.")
    if not (folder / manifest_name).is_file() or folder.is_symlink():
        raise FileError(str(folder), f"is not a folder with {manifest_name}, so it stays")


def read_artifact(folder: Path, *, manifest_name: str) -> dict[str, object]:
    """Check every byte of an artifact against its manifest and return what the manifest says.

    A changed, truncated, missing, extra or linked file is refused by name.
    """
    if not folder.exists() and folder.parent.is_dir():
        sweep(folder)
    if folder.is_symlink() or not folder.is_dir():
        raise FileError(str(folder), "must be a folder")
    path = folder / manifest_name
    document = _open_sealed(path)
    listed = document.pop("files", None)
    if not isinstance(listed, dict):
        raise FileError(str(path), "must list its files")
    present = {entry.name for entry in os.scandir(folder)} - {manifest_name}
    for name in sorted(present ^ set(listed)):
        rule = "is not listed in the manifest" if name in present else "is missing"
        raise FileError(str(folder / name), rule)
    for name, fingerprint in listed.items():
        if fingerprint != _fingerprint(folder / name):
            raise FileError(
                str(folder / name), "was changed after it was written", fix="Make it anew."
            )
    return document


def seal(document: Mapping[str, object]) -> dict[str, object]:
    """Add the checksum of the document itself, keyed if `ETIPS_SEAL_KEY` is set."""
    payload, key = canonical(document), os.environ.get(KEY_VARIABLE)
    stated = "sha256:" + hashlib.sha256(payload).hexdigest()
    if key:
        stated = "hmac-sha256:" + hmac.digest(os.fsencode(key), payload, "sha256").hex()
    return {**document, "seal": stated}


def _open_sealed(path: Path) -> dict[str, object]:
    _require_plain(path)
    if path.stat().st_size > _MANIFEST_LIMIT:
        raise FileError(str(path), "is too large for a manifest")
    with refusing(path, "cannot be read"):
        raw = path.read_bytes()
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise FileError(str(path), "is not valid JSON") from error
    if not isinstance(document, dict) or not isinstance(stated := document.pop("seal", None), str):
        raise FileError(str(path), "is not a sealed manifest")
    changed = FileError(str(path), "was changed after it was written", fix="Make it anew.")
    try:
        spelling = canonical({**document, "seal": stated})
    except (ValueError, RecursionError) as error:  # the reader takes NaN, and goes deeper
        raise changed from error
    expected = str(seal(document)["seal"])
    if stated.partition(":")[0] != expected.partition(":")[0]:
        raise FileError(str(path), f"was sealed with another kind of key; see {KEY_VARIABLE}")
    if spelling != raw or not hmac.compare_digest(stated.encode(), expected.encode()):
        raise changed
    return document


def _fingerprint(path: Path) -> dict[str, object]:
    _require_plain(path)
    digest, size = hashlib.sha256(), 0
    with refusing(path, "cannot be read"), path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return {"sha256": digest.hexdigest(), "bytes": size}


def _require_plain(path: Path) -> None:
    if not path.is_symlink() and not path.exists():
        raise FileError(str(path), "is missing")
    if not stat.S_ISREG(path.lstat().st_mode):
        raise FileError(str(path), "must be a plain file, not a link")
