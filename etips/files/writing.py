"""The one place that writes: beside the target, flushed to disk, renamed.

A file or folder appears whole or not at all; see `artifacts` for folders that cannot change unseen.
"""

import contextlib
import errno
import os
import secrets
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from etips.errors import FileError, ResourceError

Content = bytes | Callable[[BinaryIO], None]
"""What goes into a file: its bytes, or a function that writes them to an open file."""

_FILE_MODE, _FOLDER_MODE = 0o600, 0o700  # patient data: nobody else on the machine reads it
_PART, _ASIDE = ".part", ".aside"  # endings of what is not finished, and of what is being replaced
_SPENT = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EIO,
)  # the machine's fault, not the input's


def write_file(path: Path, content: Content) -> None:
    """Write one file atomically, replacing an earlier one of that name."""
    require_parent(path)
    with refusing(path, "cannot be written"), _beside(path) as temporary:
        fill_file(temporary, content)
        temporary.replace(path)
        _sync(path.parent)


@contextlib.contextmanager
def folder_made_whole(folder: Path) -> Iterator[Path]:
    """An empty folder to fill; when the block ends it takes its place, or that of an earlier one.

    If the block fails, what was there before stays as it was. Whether that may be replaced is for
    the caller to ask first.
    """
    require_parent(folder)
    with refusing(folder, "cannot be written"), _beside(folder) as temporary:
        temporary.mkdir(mode=_FOLDER_MODE)
        temporary.chmod(_FOLDER_MODE)
        yield temporary
        _sync(temporary)
        _swap_in(temporary, folder)
        _sync(folder.parent)


def require_parent(path: Path) -> None:
    """Refuse a place whose folder is not there."""
    if not path.parent.is_dir():
        raise FileError(str(path.parent), "must be a folder that exists")


def fill_file(path: Path, content: Content) -> None:
    """Make a file that is not there yet, for nobody else's eyes, and flush it to disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(path, flags, _FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        if isinstance(content, bytes):
            file.write(content)
        else:
            content(file)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def refusing(path: Path, rule: str) -> Iterator[None]:
    """Turn what the system complains of (disk full, not allowed) into one line about `path`."""
    try:
        yield
    except FileError:
        raise
    except OSError as error:
        kind = ResourceError if error.errno in _SPENT else FileError
        raise kind(str(path), f"{rule}: {error.strerror or 'the system refuses'}") from error


def sweep(path: Path) -> None:
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
def _beside(path: Path, *, ending: str = _PART) -> Iterator[Path]:
    """A name beside `path` for unfinished work; whatever stands there at the end is removed."""
    sweep(path)
    host = socket.gethostname()
    temporary = path.parent / f".{path.name}.{host}.{os.getpid()}.{secrets.token_hex(4)}{ending}"
    try:
        yield temporary
    finally:
        _remove(temporary)


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
