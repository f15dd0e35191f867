"""A folder that one process at a time may work in (goal F4).

The lock is the kernel's (`flock` on an open file), not the file's existence. The kernel hands it to
one process whatever the race, and takes it back the moment that process dies, by `kill -9` too. So
a stale lock is simply free. A file made with `O_EXCL` would have to be judged stale by its process
number, which another process may carry by then, and removed, which two can do at once, the second
removing the lock that the first has just taken.

`filelock` takes the same lock with weaker promises, so it is not used: it leaves its file in the
folder, where an artifact may hold no file that its manifest does not list, and on a file system
without `flock` it falls back to a file's existence. Here the file goes, without a moment in which
two could hold the folder, and such a file system is refused.
"""

import contextlib
import fcntl
import os
import socket
from pathlib import Path
from typing import Self

from etips.errors import FileError
from etips.files.json_documents import canonical
from etips.files.writing import refusing

LOCK_NAME = ".lock"
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC  # no program started later holds it


class Lock:
    """Holds a folder while the `with` block runs; refuses at once if somebody else does.

    It keeps out processes of the same machine, threads of the same process, and, where the network
    file system passes locks on, other machines. A forked child shares it and holds it on.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        with refusing(self.folder, "cannot be locked"):  # not allowed, no locks on this file system
            self._descriptor = _take(self.folder)
        return self

    def __exit__(self, *_: object) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        path = self.folder / LOCK_NAME
        if _is_at(descriptor, path):
            path.unlink(missing_ok=True)  # before letting go: after it, it may be somebody else's
        os.close(descriptor)


def _take(folder: Path) -> int:
    """Open and lock the file; one that its last holder removed meanwhile is opened anew."""
    path = folder / LOCK_NAME
    while True:
        descriptor = os.open(path, _FLAGS, 0o600)
        held = free = False
        try:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                free = True
            current = _is_at(descriptor, path)
            held = free and current
            if held:
                # Who holds the folder, for the eye alone; on a full disk it is held all the same.
                holder = {"host": socket.gethostname(), "process": os.getpid()}
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, 0)
                    os.write(descriptor, canonical(holder))
                return descriptor
        finally:
            if not held:
                os.close(descriptor)
        if current:
            fix = "Wait for it to end, or choose another folder."
            raise FileError(str(folder), "is in use by another process", fix=fix)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the open file still has that name: a lock on a removed file keeps nobody out."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
