"""A watch for unpickling that etips asks for (goal F5), over the whole session."""

import sys
from pathlib import Path

import etips

PACKAGE = str(Path(etips.__file__).parent) + "/"
PICKLES: list[str] = []
"""Where etips had something unpickled; stays empty."""


def _watch(event, arguments):
    """Note an unpickling that etips asked for; what an import of a third party does is its own."""
    if event != "pickle.find_class":
        return
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if "importlib" in file:
            return
        if file.startswith(PACKAGE):
            PICKLES.append(f"{file}:{frame.f_lineno}")
            return
        frame = frame.f_back


sys.addaudithook(_watch)
