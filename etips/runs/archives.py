"""Folders as bytes, for machines that share no disk."""

import io
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from etips.errors import FileError
from etips.files.lock import LOCK_NAME
from etips.files.writing import write_file

_UNFINISHED = (".part", ".aside")  # see files/writing.py


def pack(place: Path, folders: Iterable[str]) -> bytes:
    """All files of some folders of `place`, but for locks and what is not finished."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(path for name in folders for path in (place / name).rglob("*")):
            if path.is_file() and path.name != LOCK_NAME and path.suffix not in _UNFINISHED:
                archive.writestr(path.relative_to(place).as_posix(), path.read_bytes())
    return content.getvalue()


def unpack(archive: bytes, place: Path, folders: Iterable[str], *, last: str = "") -> None:
    """Write the files of an archive below `place`, each whole or not at all.

    What lies in other than the named folders is refused. Files called `last` are written after all
    others, since they say that those are there.
    """
    allowed = set(folders)
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        names = sorted(files.namelist(), key=lambda name: (name.endswith(f"/{last}"), name))
        for name in names:
            path = PurePosixPath(name)
            if path.parts[0] not in allowed or ".." in path.parts or path.is_absolute():
                raise FileError(str(place), "was sent a file that belongs elsewhere")
        for name in names:
            (place / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_file(place / name, files.read(name))
