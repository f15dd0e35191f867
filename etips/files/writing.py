"""The one place that writes: beside the target, flushed to disk, renamed, with a checksum.

A file or folder appears whole or not at all. An artifact is a folder whose manifest lists every
other file with its SHA-256 and carries a seal over itself, so that no byte of it can change unseen.
"""

import contextlib
import errno
import hashlib
import hmac
import json
import os
import secrets
import shutil
import socket
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from etips.errors import FileError, ResourceError

Content = bytes | Callable[[BinaryIO], None]
"""What goes into a file: its bytes, or a function that writes them to an open file."""

KEY_VARIABLE = "ETIPS_SEAL_KEY"
"""Environment variable with a secret; if set, artifacts are sealed with it and only such load."""

_FILE_MODE, _FOLDER_MODE = 0o600, 0o700  # patient data: nobody else on the machine reads it
_MANIFEST_LIMIT = 16 * 2**20  # a manifest is names and hashes; more than this is an attack
_BLOCK = 2**20
_PART, _ASIDE = ".part", ".aside"  # endings of what is not finished, and of what is being replaced
_SPENT = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
)  # the machine's fault, not the input's


def write_file(path: Path, content: Content) -> None:
    """Write one file atomically, replacing an earlier one of that name."""
    _require_parent(path)
    with _refusing(path, "cannot be written"), _beside(path) as temporary:
        _fill(temporary, content)
        temporary.replace(path)
        _sync(path.parent)


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
        folder: Where it goes; its parent must exist.
        files: Contents by file name.
        manifest: What else the manifest says; `files` and `seal` are added.
        manifest_name: File name of the manifest.
        overwrite: Replace an earlier artifact; any other existing path is refused.
    """
    require_place(folder, manifest_name=manifest_name, overwrite=overwrite)
    with folder_made_whole(folder) as temporary:
        for name, content in files.items():
            _fill(temporary / name, content)
        listed = {name: _fingerprint(temporary / name) for name in files}
        document = seal({**manifest, "files": listed})
        _fill(temporary / manifest_name, canonical(document))


def require_place(folder: Path, *, manifest_name: str, overwrite: bool) -> None:
    """Refuse a place that `write_artifact` would refuse; ask before hours of work, not after.

    Args:
        folder: Where an artifact is to go.
        manifest_name: File by which an earlier artifact is known.
        overwrite: Whether that may be replaced; any other existing path is refused.
    """
    _require_parent(folder)
    if not folder.is_symlink() and not folder.exists():
        return
    if not overwrite:
        raise FileError(str(folder), "exists already", fix="Choose another place or overwrite.")
    if not (folder / manifest_name).is_file() or folder.is_symlink():
        raise FileError(str(folder), f"is not a folder with {manifest_name}, so it stays")


@contextlib.contextmanager
def folder_made_whole(folder: Path) -> Iterator[Path]:
    """An empty folder to fill; when the block ends it takes its place, or that of an earlier one.

    If the block fails, what was there before stays as it was. Whether that may be replaced is for
    the caller to ask first.
    """
    _require_parent(folder)
    with _refusing(folder, "cannot be written"), _beside(folder) as temporary:
        temporary.mkdir(mode=_FOLDER_MODE)
        temporary.chmod(_FOLDER_MODE)
        yield temporary
        _sync(temporary)
        _swap_in(temporary, folder)
        _sync(folder.parent)


def read_artifact(folder: Path, *, manifest_name: str) -> dict[str, object]:
    """Check every byte of an artifact against its manifest and return what the manifest says.

    A changed, truncated, missing, extra or linked file is refused by name.
    """
    if not folder.exists() and folder.parent.is_dir():
        _sweep(folder)
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


def canonical(document: Mapping[str, object]) -> bytes:
    """The one spelling of a JSON document: sorted keys, ASCII, no NaN."""
    text = json.dumps(document, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False)
    return text.encode() + b"\n"


def seal(document: Mapping[str, object]) -> dict[str, object]:
    """Add the checksum of the document itself, keyed if `ETIPS_SEAL_KEY` is set."""
    return {**document, "seal": _seal_of(canonical(document))}


def _seal_of(payload: bytes) -> str:
    key = os.environ.get(KEY_VARIABLE)
    if key:
        digest = hmac.new(os.fsencode(key), payload, hashlib.sha256)
        return "hmac-sha256:" + digest.hexdigest()
    return "sha256:" + hashlib.sha256(payload).hexdigest()


def _open_sealed(path: Path) -> dict[str, object]:
    _require_plain(path)
    if path.stat().st_size > _MANIFEST_LIMIT:
        raise FileError(str(path), "is too large for a manifest")
    with _refusing(path, "cannot be read"):
        raw = path.read_bytes()
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise FileError(str(path), "is not valid JSON") from error
    if not isinstance(document, dict) or not isinstance(found := document.pop("seal", None), str):
        raise FileError(str(path), "is not a sealed manifest")
    changed = FileError(str(path), "was changed after it was written", fix="Make it anew.")
    try:
        spelling = canonical({**document, "seal": found})
    except (ValueError, RecursionError) as error:  # the reader takes NaN, and goes deeper
        raise changed from error
    expected = _seal_of(canonical(document))
    if found.partition(":")[0] != expected.partition(":")[0]:
        raise FileError(str(path), f"was sealed with another kind of key; see {KEY_VARIABLE}")
    if spelling != raw or not hmac.compare_digest(found.encode(), expected.encode()):
        raise changed
    return document


def _fingerprint(path: Path) -> dict[str, object]:
    _require_plain(path)
    digest, size = hashlib.sha256(), 0
    with _refusing(path, "cannot be read"), path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return {"sha256": digest.hexdigest(), "bytes": size}


def _require_plain(path: Path) -> None:
    if not path.is_symlink() and not path.exists():
        raise FileError(str(path), "is missing")
    if not stat.S_ISREG(path.lstat().st_mode):
        raise FileError(str(path), "must be a plain file, not a link")


def _require_parent(path: Path) -> None:
    if not path.parent.is_dir():
        raise FileError(str(path.parent), "must be a folder that exists")


def _fill(path: Path, content: Content) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, _FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            content(file)
        file.flush()
        os.fsync(file.fileno())


def _swap_in(temporary: Path, folder: Path) -> None:
    """Put the new folder in place; the old one is moved aside first and comes back on failure."""
    if not folder.exists():
        temporary.rename(folder)
        return
    with _beside(folder, ending=_ASIDE) as aside:
        folder.rename(aside)
        try:
            temporary.rename(folder)
        except BaseException:  # an interrupt too: what stands aside is removed on the way out
            if not folder.exists():
                aside.rename(folder)
            raise


@contextlib.contextmanager
def _refusing(path: Path, rule: str) -> Iterator[None]:
    """Turn what the system complains of (disk full, not allowed) into one line about `path`."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        kind = ResourceError if error.errno in _SPENT else FileError
        raise kind(str(path), f"{rule}: {error.strerror or 'the system refuses'}") from error


@contextlib.contextmanager
def _beside(path: Path, *, ending: str = _PART) -> Iterator[Path]:
    """A name beside `path` for unfinished work; whatever stands there at the end is removed."""
    _sweep(path)
    host = socket.gethostname()
    temporary = path.parent / f".{path.name}.{host}.{os.getpid()}.{secrets.token_hex(4)}{ending}"
    try:
        yield temporary
    finally:
        _remove(temporary)


def _sweep(path: Path) -> None:
    """Clear up after a process of this machine that was killed while it wrote to `path`.

    Killed between the two renames of an overwrite, it left the old artifact aside and nothing in
    its place: that comes back. The rest is unfinished and goes.
    """
    start = f".{path.name}.{socket.gethostname()}."
    for entry in os.scandir(path.parent):
        if entry.name.startswith(start) and entry.name.endswith((_PART, _ASIDE)):
            owner = entry.name[len(start) :].split(".")[0]
            if owner.isascii() and owner.isdecimal() and not _alive(int(owner)):
                left = Path(entry.path)
                if left.suffix == _ASIDE and not path.exists():
                    left.rename(path)
                else:
                    _remove(left)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Make the renaming itself survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
